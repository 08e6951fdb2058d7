package index

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/lua"
)

func TestACursorGivesBackThePairThatItWasMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })
		pair := lua.Pair{Score: text.Draw(t, "score"), Member: text.Draw(t, "member")}
		query := text.Draw(t, "query")
		got, err := newCursor(query, pair).open(query)
		require.NoError(t, err)
		require.Equal(t, pair, got)
		_, err = newCursor(query, pair).open(query + ".")
		require.ErrorIs(t, err, ErrCursor)
	})
	got, err := Cursor("").open("any")
	require.NoError(t, err)
	require.Zero(t, got, "the beginning")
}
