package membership_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lockstep-go/lockstep/internal/redistest"
	"github.com/lockstep-go/lockstep/membership"
)

// textOf is the text that an index writes for s.
func textOf(t require.TestingT, s string, o ...membership.Option) string {
	entries, err := membership.New("x", func(s string) string { return s }, o...).Entries(s)
	require.NoError(t, err)
	text, ok := entries[0].Value.IsText()
	require.True(t, ok)
	return text
}

func TestTextsThatDifferOnlyByCaseAreOneValueInEveryScript(t *testing.T) {
	for _, same := range [][]string{
		{"straße", "STRASSE", "Strasse", "STRAẞE", "straſſe"},
		{"ΣΊΣΥΦΟΣ", "σίσυφος", "σίσυφοσ", "Σίσυφος"}, // the sigma at the end of a word
		{"Kelvin", "KELVIN", "\u212Aelvin"},          // the sign of the unit
		{"ﬁne", "FINE", "fine", "ﬁNE"},
		{"ЁЖ", "ёж", "Ёж"},
		{"ŉ", "ʼn"},
		{"\uAB70", "\u13A0"}, // Cherokee folds upwards
		{"Ann@X.org", "ann@x.ORG"},
		{"a\xffÉ", "A\xffé"},
	} {
		for _, s := range same {
			require.Equal(t, textOf(t, same[0], membership.Fold), textOf(t, s, membership.Fold), "%q and %q", same[0], s)
		}
	}
}

func TestTextsThatUnicodeKeepsApartStayApart(t *testing.T) {
	for _, pair := range [][2]string{
		{"I", "ı"}, // the Turkish letter without a dot is no i
		{"i", "ı"},
		{"İ", "i"}, // the one with a dot is i and a dot
		{"é", "e\u0301"},
		{"a", "а"}, // Cyrillic
		{"ss", "s"},
	} {
		require.NotEqual(t, textOf(t, pair[0], membership.Fold), textOf(t, pair[1], membership.Fold), "%q and %q", pair[0], pair[1])
	}
	require.Equal(t, "i\u0307", textOf(t, "İ", membership.Fold))
}

func TestFoldingAgreesWithUnicodeForEveryLetter(t *testing.T) {
	step := rune(redistest.Full(1, 17))
	for r := rune(0); r <= unicode.MaxRune; r += step {
		if !utf8.ValidRune(r) {
			continue
		}
		once := textOf(t, string(r), membership.Fold)
		if once == string(r) && unicode.SimpleFold(r) == r {
			continue
		}
		require.Equal(t, once, textOf(t, once, membership.Fold), "%U: folding twice is folding once", r)
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			require.Equal(t, once, textOf(t, string(f), membership.Fold), "%U and %U", r, f)
		}
	}
}

func texts() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"a", "B", "ß", "ẞ", "Σ", "ς", "İ", "ı", "K", "ﬃ", " ", "\t", "\u00a0", "\u2003", "\xff", "\xc3", "\xed\xa0\x80", "\ufffd", "e\u0301"})
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(piece, 0, 12), func(p []string) string { return strings.Join(p, "") }),
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
}

func TestFoldAndTrimAppliedTwiceGiveWhatTheyGiveOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := texts().Draw(t, "text")
		for _, o := range [][]membership.Option{
			{membership.Fold}, {membership.Trim}, {membership.Fold, membership.Trim}, {membership.Trim, membership.Fold},
		} {
			once := textOf(t, s, o...)
			require.Equal(t, once, textOf(t, once, o...))
		}
	})
}

func TestBytesThatAreNoUnicodeAreKept(t *testing.T) {
	for _, s := range []string{"\xff", "\xfe", "a\xffb", "\xc3", "\xed\xa0\x80", "\xff\xff", "\ufffd", "\xf0\x9f", "\x00\xff\n"} {
		require.Equal(t, s, textOf(t, s, membership.Fold))
		require.Equal(t, "x"+s+"x", textOf(t, "X"+s+"X", membership.Fold))
	}
	rapid.Check(t, func(t *rapid.T) {
		// Lower-case letters and broken bytes only: folding has nothing to do, so nothing may meet.
		b := rapid.SliceOf(rapid.OneOf(rapid.ByteRange('a', 'z'), rapid.ByteRange(0x80, 0xbf), rapid.ByteRange(0xf8, 0xff)))
		s := string(b.Draw(t, "bytes"))
		require.Equal(t, s, textOf(t, s, membership.Fold))
	})
}

func TestWhiteSpaceAroundATextIsIgnoredWhereAskedFor(t *testing.T) {
	require.Equal(t, "a b", textOf(t, " \t\r\n\u00a0\u2003a b\u3000 ", membership.Trim))
	require.Equal(t, " a ", textOf(t, " a "), "and nowhere else")
	require.Empty(t, textOf(t, " \n ", membership.Trim))
	require.Equal(t, "\xff", textOf(t, " \xff ", membership.Trim))
	require.Equal(t, "ann", textOf(t, " ANN ", membership.Fold, membership.Trim))
}

func TestFoldAndTrimAreRefusedForWhatIsNoText(t *testing.T) {
	for _, o := range []membership.Option{membership.Fold, membership.Trim} {
		require.ErrorContains(t, membership.New("x", func(n int) int { return n }, o).Definition().Err, "int")
		require.Error(t, membership.New("x", func(b bool) bool { return b }, o).Definition().Err)
		pair := func(s string) membership.Pair[string, string] { return membership.Of(s, s) }
		require.Error(t, membership.New("x", pair, o).Definition().Err)
		require.NoError(t, membership.New("x", func(s word) word { return s }, o).Definition().Err)
		require.NoError(t, membership.New("x", func(c code) code { return c }, o).Definition().Err)
	}
	require.Equal(t, "c7", textOf(t, "C7", membership.Fold))
}

func TestANormaliserDecidesForWritesAndQueriesAlike(t *testing.T) {
	host := membership.Normalize(func(s string) string { return strings.TrimSuffix(s, ".") })
	require.Equal(t, "x.org", textOf(t, "x.org.", host))
	short := membership.Normalize(func(s string) string { return s[:min(3, len(s))] })
	require.Equal(t, "x.o", textOf(t, "X.ORG.", membership.Fold, short, host), "normalisers go first, wherever they stand")

	tens := membership.Normalize(func(n int) int { return n - n%10 })
	require.Equal(t, valueOf(t, 40), valueOf(t, 47, tens))
	twice := membership.Normalize(func(n int) int { return n + 1 })
	require.Equal(t, valueOf(t, 41), valueOf(t, 47, tens, twice), "in the order given")
}

func TestANormaliserOfAnotherTypeIsReportedWithBothTypes(t *testing.T) {
	wrong := membership.Normalize(func(n int) int { return n })
	err := membership.New("x", func(s string) string { return s }, wrong).Definition().Err
	require.ErrorContains(t, err, "func(int) int")
	require.ErrorContains(t, err, "string")
	named := membership.Normalize(func(s string) string { return s })
	require.ErrorContains(t, membership.New("x", func(s word) word { return s }, named).Definition().Err, "word")
	require.ErrorContains(t, membership.New("x", func(s string) string { return s }, membership.Normalize[string](nil)).Definition().Err, "no function")
	reading := membership.Reading(func(string) ([]int, error) { return nil, errors.New("never asked") })
	require.ErrorContains(t, membership.New("x", func(s string) string { return s }, reading).Definition().Err, "Reading")
}

func TestEverythingWrongWithAnIndexIsReportedAtOnce(t *testing.T) {
	err := membership.New[*int, *int]("x", nil, membership.Fold, membership.MaxValues(0), membership.Normalize(strings.ToLower)).Definition().Err
	for _, part := range []string{"no function", "*int cannot be indexed", "MaxValues(0)", "Normalize is", "Fold and Trim"} {
		require.ErrorContains(t, err, part)
	}
	require.Error(t, membership.Sparse[string, string]("x", nil).Definition().Err)
	require.Error(t, membership.Multi[string, string]("x", nil).Definition().Err)
	require.Error(t, membership.Unique[string, string]("x", nil).Definition().Err)
	require.NoError(t, membership.New("x", func(s string) string { return s }, membership.Option{}).Definition().Err)
}
