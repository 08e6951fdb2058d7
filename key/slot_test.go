package key_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/key"
)

func TestSlotAgreesWithRedisElseWritesGoToTheWrongNode(t *testing.T) {
	// What CLUSTER KEYSLOT answers.
	for k, slot := range map[string]int{
		"":                0,
		"123456789":       0x31C3,
		"foo":             12182,
		"bar":             5061,
		"hello":           866,
		"{foo}":           12182,
		"foo{bar}":        5061,
		"foo{bar}{zap}":   5061,
		"foo{hello}}":     866,
		"{user1000}.a":    3443,
		"user1000":        3443,
		"foo{}{bar}":      8363,
		"acme:{foo}:x:v1": 12182,
	} {
		require.Equal(t, slot, key.Slot(k), "%q", k)
	}
}

func TestSlotFollowsTheHashTagRuleElseOneIDLandsElsewhere(t *testing.T) {
	require.Equal(t, key.Slot("b"), key.Slot("a{b}c"))
	require.Equal(t, key.Slot("x{b}y{z}"), key.Slot("b"))
	require.Equal(t, key.Slot("{bar"), key.Slot("q{{bar}}zap"), "the first } ends the tag, the second { belongs to it")
	// No tag, or an empty one: the whole key counts. `}` in front makes no tag either.
	require.NotEqual(t, key.Slot("{}a"), key.Slot("{}b"))
	require.NotEqual(t, key.Slot("{x"), key.Slot("x"))
	require.NotEqual(t, key.Slot("}x{"), key.Slot("x"))
	require.NotEqual(t, key.Slot("{}{a}"), key.Slot("a"), "only the first { counts")
}
