package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/internal/plan"
)

func tokens() *rapid.Generator[plan.Token] {
	return rapid.Map(rapid.StringMatching(`[a-z_]{1,8}\.[1-9][0-9]{0,2}:[ -~é]{0,20}`), func(body string) plan.Token {
		return plan.NewToken(plan.Set, body, "")
	})
}

func TestARowReadsBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := plan.Row{
			WriteID: string(rapid.SliceOfN(rapid.Byte(), plan.WriteIDSize, plan.WriteIDSize).Draw(t, "write id")),
			Seq:     rapid.Int64Min(0).Draw(t, "seq"),
		}
		if list := rapid.SliceOfN(tokens(), 0, 12).Draw(t, "entries"); len(list) > 0 {
			row.Entries = list
		}
		back, err := plan.ParseRow(row.String())
		require.NoError(t, err)
		require.Equal(t, row, back)
	})
}

func TestAWriteIDMayHoldTheBytesThatPartARow(t *testing.T) {
	for _, id := range []string{"\n\n\n\n\n\n\n\n", "12345678", "\x00\xff\n:s~\n1"} {
		row := plan.Row{WriteID: id, Seq: 7, Entries: []plan.Token{"sstatus.1:new"}}
		back, err := plan.ParseRow(row.String())
		require.NoError(t, err)
		require.Equal(t, row, back)
	}
}

func TestADamagedRowIsReportedInsteadOfRead(t *testing.T) {
	for name, s := range map[string]string{
		"empty":               "",
		"write id alone":      "12345678",
		"no counter":          "12345678\nsstatus.1:new",
		"counter not decimal": "12345678x",
		"negative counter":    "12345678-1",
		"counter too large":   "123456789223372036854775808",
		"empty entry":         "123456781\n\nsstatus.1:new",
		"entry at the end":    "123456781\nsstatus.1:new\n",
		"kind without body":   "123456781\ns",
		"unknown kind":        "123456781\nq~status.1:new",
	} {
		_, err := plan.ParseRow(s)
		require.ErrorIs(t, err, plan.ErrRow, name)
	}
}

func TestTheErrorOfADamagedRowHoldsNoValue(t *testing.T) {
	_, err := plan.ParseRow("123456781\nqann@example.org")
	require.ErrorIs(t, err, plan.ErrRow)
	require.NotContains(t, err.Error(), "ann@")
}

func TestTheEntriesOfARowCompareAsText(t *testing.T) {
	// The script compares what the plan assumed with the row byte by byte.
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(tokens(), 1, 12).Draw(t, "entries")
		text := plan.Join(list)
		back, err := plan.Split(text)
		require.NoError(t, err)
		require.Equal(t, list, back)
		require.Equal(t, text, plan.Join(back))
		require.Equal(t, len(list)-1, strings.Count(text, "\n"))
	})
	none, err := plan.Split("")
	require.NoError(t, err)
	require.Empty(t, none)
	require.Empty(t, plan.Join(nil))
}

func FuzzParseRow(f *testing.F) {
	f.Add("123456780")
	f.Add("1234567842\nsstatus.1:new\nstag.2:a%3Ab")
	f.Add("\n\n\n\n\n\n\n\n0\nsa.1:")
	f.Fuzz(func(t *testing.T, s string) {
		row, err := plan.ParseRow(s)
		if err != nil {
			require.ErrorIs(t, err, plan.ErrRow)
			require.Equal(t, plan.Row{}, row, "half a row is not handed out")
			return
		}
		require.Len(t, row.WriteID, plan.WriteIDSize)
		require.GreaterOrEqual(t, row.Seq, int64(0))
		for _, token := range row.Entries {
			require.Contains(t, []plan.Kind{plan.Set, plan.Ranked, plan.Lexical}, token.Kind())
			require.NotEmpty(t, token.Body())
		}
		again, err := plan.ParseRow(row.String())
		require.NoError(t, err)
		require.Equal(t, row, again)
	})
}
