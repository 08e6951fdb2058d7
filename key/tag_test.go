package key_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/key"
)

func TestBucketsDivideTheSlotsEvenlyElseOneNodeCarriesTheLoad(t *testing.T) {
	// A bucket lies on its boundary, rounded, or up to 8 slots behind it.
	check := func(tag key.Tag, err error, origin, i, n int) {
		require.NoError(t, err)
		boundary := float64(16384*i) / float64(n)
		behind := float64((key.Slot(tag.String())-origin+16384)%16384) - boundary
		if i == 0 && behind > 16000 {
			behind -= 16384
		}
		require.True(t, behind >= -0.5 && behind <= 8.5, "bucket %d of %d is %v slots behind its boundary", i, n, behind)
	}
	for n := 1; n <= 512; n++ {
		for i := range n {
			tag, err := key.Bucket("account", i, n)
			check(tag, err, 0, i, n)
		}
	}
	for _, group := range []string{"", "customer-7", "é.{x}", strings.Repeat("long", 200)} {
		for _, n := range []int{1, 2, 3, 7, 64, 512} {
			for i := range n {
				tag, err := key.GroupBucket(group, i, n)
				check(tag, err, key.Slot(key.Group(group).String()), i, n)
			}
		}
	}
}

func TestEveryMasterOfACommonClusterGetsItsShareOfBuckets(t *testing.T) {
	for masters := 1; masters <= 32; masters++ {
		for _, each := range []int{1, 2, 5} {
			// The two ways in which tools round: the first slot of master m.
			for _, first := range []func(m int) int{
				func(m int) int { return (16384*m + masters/2) / masters },
				func(m int) int { return (16384*m + masters - 1) / masters },
			} {
				got := make([]int, masters)
				for i := range masters * each {
					tag, err := key.Bucket("account", i, masters*each)
					require.NoError(t, err)
					m := 0
					for m+1 < masters && first(m+1) <= key.Slot(tag.String()) {
						m++
					}
					got[m]++
				}
				for m := range got {
					require.Equal(t, each, got[m], "master %d of %d", m, masters)
				}
			}
		}
	}
}

func TestFirstBucketsOfManyGroupsDoNotMeetInOneSlot(t *testing.T) {
	seen := map[int]bool{}
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		tag, err := key.GroupBucket("customer-"+string(c), 0, 4)
		require.NoError(t, err)
		seen[key.Slot(tag.String())] = true
	}
	require.Greater(t, len(seen), 20)
}

func TestBucketTagsAreTheSameInEveryReleaseElseRecordsAreLost(t *testing.T) {
	// Data in production hangs on these texts. They never change.
	for want, build := range map[string]func() (key.Tag, error){
		"{account.0.kpQ}":   func() (key.Tag, error) { return key.Bucket("account", 0, 64) },
		"{account.17.hNU}":  func() (key.Tag, error) { return key.Bucket("account", 17, 64) },
		"{eu%2Ewest.3.pMm}": func() (key.Tag, error) { return key.GroupBucket("eu.west", 3, 4) },
	} {
		tag, err := build()
		require.NoError(t, err)
		require.Equal(t, want, tag.String())
	}
}

func TestTagSaysWhatItWasMadeOf(t *testing.T) {
	tag, err := key.Bucket("acc.ount", 17, 64)
	require.NoError(t, err)
	i, ok := tag.Bucket()
	require.True(t, ok)
	require.Equal(t, 17, i)
	require.Equal(t, "acc.ount", tag.Name())

	_, ok = key.Single("account.17.hhh").Bucket()
	require.False(t, ok, "a name with dots is no bucket")
	require.Equal(t, "account.17.hhh", key.Single("account.17.hhh").Name())
	require.Equal(t, key.Single("x"), key.Group("x"))

	require.True(t, key.Tag{}.IsZero())
	require.Equal(t, "{}", key.Tag{}.String())
	require.Equal(t, "", key.Tag{}.Name())
	require.False(t, key.Group("").IsZero(), "the group \"\" is a group: its keys live together")
	require.Equal(t, "{%_}", key.Group("").String())

	long := key.Group(strings.Repeat("g", 300))
	require.True(t, long.Digested())
	require.Len(t, long.Name(), 64)
	require.False(t, key.Group(strings.Repeat("g", 256)).Digested())
	require.True(t, key.Group(strings.Repeat(":", 86)).Digested(), "what counts are encoded bytes")
}

func TestBucketOutOfRangeIsAnErrorElseAnIDHasNoHome(t *testing.T) {
	for _, c := range [][2]int{{0, 0}, {0, -1}, {-1, 4}, {4, 4}, {0, 16385}} {
		_, err := key.Bucket("account", c[0], c[1])
		require.ErrorIs(t, err, key.ErrRange)
		_, err = key.GroupBucket("g", c[0], c[1])
		require.ErrorIs(t, err, key.ErrRange)
	}
	_, err := key.Bucket("account", 16383, 16384)
	require.NoError(t, err)
}

func TestDifferentGroupsNeverShareATagElseTwoCustomersMix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts().Draw(t, "a"), texts().Draw(t, "b")
		require.Equal(t, a == b, key.Group(a) == key.Group(b))
		n := rapid.IntRange(1, 64).Draw(t, "n")
		i := rapid.IntRange(0, n-1).Draw(t, "i")
		bucket, err := key.GroupBucket(a, i, n)
		require.NoError(t, err)
		require.NotEqual(t, key.Group(b), bucket)
	})
}

func TestUntrustedBucketsKeepTheirSlotElseTheSpreadIsLost(t *testing.T) {
	for _, name := range []string{"customer", strings.Repeat("é", 200), ""} {
		for i := range 16 {
			tag, err := key.Bucket(name, i, 16)
			require.NoError(t, err)
			p := partition(t, space(t, key.Redis.Untrusted()), tag)
			require.Equal(t, key.Slot(tag.String()), p.Slot())
			require.True(t, p.Tag().Digested())
			again, ok := p.Tag().Bucket()
			require.True(t, ok)
			require.Equal(t, i, again)
		}
	}
}
