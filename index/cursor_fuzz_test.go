package index

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/lua"
)

// FuzzCursor takes texts for cursors, and pairs through them.
func FuzzCursor(f *testing.F) {
	f.Add("", "q", "1.5", "id")
	f.Add(string(newCursor("q", lua.Pair{Score: "1.5", Member: "id"})), "q", "-inf", "a\x00b")
	f.Add(string(newCursor("q", lua.Pair{})), "other", "", "")
	f.Add("AAAAAAAAAAAAAAAAAAAAAAAA", "q", "0", "\xff")
	f.Fuzz(func(t *testing.T, text, query, score, member string) {
		pair, err := Cursor(text).open(query)
		switch {
		case err != nil:
			require.ErrorIs(t, err, ErrCursor)
			require.Equal(t, lua.Pair{}, pair, "half a pair is not handed out")
		case text != "":
			require.Equal(t, Cursor(text), newCursor(query, pair), "one pair has one cursor")
		}
		want := lua.Pair{Score: score, Member: member}
		c := newCursor(query, want)
		pair, err = c.open(query)
		require.NoError(t, err)
		require.Equal(t, want, pair)
		_, err = c.open(query + "'")
		require.ErrorIs(t, err, ErrCursor, "the cursor of another query")
		_, err = c[:len(c)-1].open(query)
		require.ErrorIs(t, err, ErrCursor, "a cut cursor")
	})
}
