package cli

import (
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// plainWidth is how wide output is made for that goes to no terminal.
const plainWidth = 120

// grid is a table for people: a header, rows of cells, and the numbers, from 0, of the columns that are flushed right.
// Cells are texts of the data: they are made printable.
type grid struct {
	header []string
	rows   [][]string
	right  []int
	marks  map[[2]int]colour // of cells, by row and column
}

// colour is the code of a terminal.
type colour string

const (
	bright colour = "1;36"
	bad    colour = "1;31"
	good   colour = "1;32"
)

// mark gives a cell a colour.
func (g *grid) mark(row, column int, c colour) {
	if g.marks == nil {
		g.marks = map[[2]int]colour{}
	}
	g.marks[[2]int{row, column}] = c
}

// grid prints a table, indented by some spaces.
func (s *session) grid(g grid, indent string) error {
	w := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	row := func(i int, cells []string) table.Row {
		out := make(table.Row, len(cells))
		for j, c := range cells {
			out[j] = printable(c)
			if code, ok := g.marks[[2]int{i, j}]; ok {
				out[j] = s.coloured(code, printable(c))
			}
		}
		return out
	}
	w.AppendHeader(row(-1, g.header))
	for i, cells := range g.rows {
		w.AppendRow(row(i, cells))
	}
	configs := make([]table.ColumnConfig, len(g.right))
	for i, column := range g.right {
		configs[i] = table.ColumnConfig{Number: column + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	w.SetColumnConfigs(configs)
	w.SuppressTrailingSpaces()
	_, err := s.out.WriteString(prefixed(w.Render(), indent) + "\n")
	return err
}

// width is how many characters a line may have.
func (s *session) width() int {
	if f, ok := s.app.Stdout.(*os.File); ok && s.outTerminal {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return plainWidth
}

// cut shortens a text to a width, with a mark where something is missing.
func cut(line string, width int) string {
	return text.Snip(line, max(width, 1), "…")
}

// bold highlights a text on a terminal.
func (s *session) bold(text string) string { return s.coloured(bright, text) }

// coloured gives a text a colour on a terminal.
func (s *session) coloured(c colour, text string) string {
	if !s.outTerminal || s.app.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
