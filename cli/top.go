package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/index"
)

// topFlags are those of top.
type topFlags struct {
	n               int
	within          string
	after           string
	ids             bool
	lowest, highest bool
}

const defaultPage = 20

func newTopCommand(s *session) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top INDEX",
		Short: "Print the first records in the order of a ranked index",
		Long: `Print a page of records in the order of a ranked index: from its highest score down, or for an index that keeps the lowest
from its lowest up; --highest and --lowest choose. Equal scores are ordered by id. An index with groups needs --within.

Where there is more, the end of the page gives a cursor: --after CURSOR goes on after it, with the same index, group and
direction. A page has at most as many records as the index keeps.

A bounded index trims what falls out of its best. A page that may miss something for that reason is incomplete, and says
so: at its end, or on standard error with --ids, or as "complete": false.

With --json the output is one object: {"items": [{"id", "score", "record"}, ...], "complete": true, "next": "CURSOR"}; next
is "" at the end. Scores are numbers, or texts for times and texts. With --ids the items have no records; without --json
that prints an id a line.`,
		Example: s.examples("top recent -n 20", "top strongest --within ak", "top recent --after CURSOR --json", "top due --ids"),
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().IntVarP(&f.n, "n", "n", defaultPage, "print at most `N`")
	cmd.Flags().StringVar(&f.within, "within", "", "`VALUE` of the group, for an index with groups")
	cmd.Flags().StringVar(&f.after, "after", "", "`CURSOR` of the page to go on after")
	cmd.Flags().BoolVar(&f.ids, "ids", false, "print ids only")
	cmd.Flags().BoolVar(&f.lowest, "lowest", false, "begin at the lowest score")
	cmd.Flags().BoolVar(&f.highest, "highest", false, "begin at the highest score")
	cmd.MarkFlagsMutuallyExclusive("lowest", "highest")
	cmd.RunE = s.run(func(ctx context.Context, args []string) error {
		if f.n < 1 {
			return fmt.Errorf("-n %d: a page has at least one record", f.n)
		}
		t, err := s.target()
		if err != nil {
			return err
		}
		if err := t.hasIndex(args[0]); err != nil {
			return err
		}
		q := index.TopRequest{Index: args[0], N: f.n, After: index.Cursor(f.after)}
		if keep := t.keeps(args[0]); keep > 0 && !cmd.Flags().Changed("n") {
			q.N = min(q.N, keep)
		}
		if cmd.Flags().Changed("within") {
			q.Within = &f.within
		}
		switch {
		case f.lowest:
			q.From = index.Lowest
		case f.highest:
			q.From = index.Highest
		}
		o, done, err := s.openIndexed(ctx, t, reading)
		if err != nil {
			return err
		}
		defer done()
		page, err := o.TopEncoded(ctx, q)
		if err != nil {
			return ofQuery(err)
		}
		return s.page(page, f.ids)
	})
	return cmd
}

// keeps is how many records an index keeps in each order, 0 for all.
func (t target) keeps(index string) int {
	for _, d := range t.Definitions() {
		if d.Name == index {
			return d.Bound.Keep
		}
	}
	return 0
}

// Words about a page.
const (
	incompletePage = "incomplete: the index has trimmed or lost records that may belong on this page; " +
		"the order shown is right, others may be missing in it"
	moreFollow = "more follow: --after "
)

// page prints a page.
func (s *session) page(p index.TopResult, ids bool) error {
	switch {
	case s.json:
		return s.pageJSON(p, ids)
	case ids:
		for _, item := range p.Items {
			if err := s.line(item.ID); err != nil {
				return err
			}
		}
		if !p.Complete {
			s.note("warning: ", incompletePage)
		}
		if p.Next != "" {
			s.note("note: ", moreFollow+string(p.Next))
		}
		return nil
	}
	if err := s.pageTable(p); err != nil {
		return err
	}
	if !p.Complete {
		if err := s.line(incompletePage); err != nil {
			return err
		}
	}
	if p.Next != "" {
		return s.line(moreFollow + string(p.Next))
	}
	return nil
}

func (s *session) pageTable(p index.TopResult) error {
	if len(p.Items) == 0 {
		return s.line("no records")
	}
	g := grid{header: []string{"", "id", "score", "record"}, right: []int{0, 2}}
	idWidth, scoreWidth := 2, 5
	for i, item := range p.Items {
		score := item.Score.String()
		idWidth, scoreWidth = max(idWidth, len(printable(item.ID))), max(scoreWidth, len(printable(score)))
		g.rows = append(g.rows, []string{strconv.Itoa(i + 1), item.ID, score, printable(string(item.Bytes))})
	}
	room := max(s.width()-idWidth-scoreWidth-len(strconv.Itoa(len(p.Items)))-8, 20)
	for _, row := range g.rows {
		row[3] = cut(row[3], room)
	}
	return s.grid(g, "")
}

// pageItem is one record of a page in JSON output.
type pageItem struct {
	ID     any `json:"id"`
	Score  any `json:"score"`
	Record any `json:"record,omitempty"`
}

func (s *session) pageJSON(p index.TopResult, ids bool) error {
	out := struct {
		Items    []pageItem   `json:"items"`
		Complete bool         `json:"complete"`
		Next     index.Cursor `json:"next"`
	}{make([]pageItem, len(p.Items)), p.Complete, p.Next}
	for i, item := range p.Items {
		out.Items[i] = pageItem{ID: textOf(item.ID), Score: scoreOf(item.Score)}
		switch {
		case ids:
		case json.Valid(item.Bytes):
			out.Items[i].Record = json.RawMessage(item.Bytes)
		default:
			out.Items[i].Record = base64Of{item.Bytes}
		}
	}
	return s.value(out)
}

// scoreOf is a score for JSON output: a number with all of its digits, or a text for times, texts and infinities.
func scoreOf(score index.Score) any {
	_, whole := score.Int64()
	if score.Time().IsZero() && (whole || score.Float64() != 0) && json.Valid([]byte(score.String())) {
		return json.Number(score.String())
	}
	return textOf(score.String())
}
