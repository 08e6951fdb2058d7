package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/internal/quakes"
)

// demoSchema declares the earthquakes of the demonstration; the owner is filled in.
const demoSchema = `owner: %s
entity: quake
version: 1
id: id
lifetime: forever
indexes:
  status:    {membership: status}
  net:       {membership: net}
  source:    {membership: sources, split: ","}
  recent:    {ranked: time, time: ms, keep: 1000}
  strongest: {ranked: mag, keep: 100, within: net}
`

// shownNetwork is the network whose strongest earthquakes are shown: Alaska.
const shownNetwork = "ak"

// event is what the demonstration shows of an earthquake.
type event struct {
	ID     string
	Place  string
	Mag    json.Number
	Status string
	Net    string
	Time   int64
}

func (d *demo) open() error {
	d.title("2  A week of earthquakes: the declaration")
	d.say("%s", indent(fmt.Sprintf(demoSchema, d.owner)))
	var err error
	d.quakes, err = d.target.on(d.ctx, d.rdb, index.OpenOptions{
		Retry: index.Retry{Budget: d.s.timeout}, AssumeEmpty: true, // the owner is new: nothing to look for
	})
	return err
}

func (d *demo) load() error {
	text := bytes.Join(slices.Collect(quakes.Lines()), []byte("\n"))
	start := time.Now()
	l := &loader{into: d.quakes, batch: loadBatch}
	d.command("load earthquakes.jsonl")
	if err := l.run(d.ctx, newLines(bytes.NewReader(text), maxLine)); err != nil {
		return err
	}
	took := time.Since(start)
	d.say("  loaded %s in %v (%.0f records/s)", plural(l.loaded, "record"), roundTime(took), float64(l.loaded)/took.Seconds())
	return nil
}

func (d *demo) lookUp() error {
	return d.counts("status=automatic", "status=reviewed", "net=ci", "source=us")
}

// counts prints the answers to conditions.
func (d *demo) counts(conditions ...string) error {
	d.say("")
	for _, c := range conditions {
		name, value, err := d.target.condition(c)
		if err != nil {
			return err
		}
		n, err := d.quakes.CountOf(d.ctx, name, value)
		if err != nil {
			return err
		}
		d.say("  $ %s count %-18s %s", d.s.app.Name, c, d.s.bold(fmt.Sprintf("%5d", n)))
	}
	return nil
}

// top shows the most recent of all, and the strongest of one network.
func (d *demo) top() error {
	if err := d.page("recent", 20, ""); err != nil {
		return err
	}
	return d.page("strongest", 5, shownNetwork)
}

// page shows a page of a ranked index as a table.
func (d *demo) page(name string, n int, within string) error {
	q := index.TopRequest{Index: name, N: n}
	text := fmt.Sprintf("top %s -n %d", name, n)
	if within != "" {
		q.Within = &within
		text += " --within " + within
	}
	d.command(text)
	p, err := d.quakes.TopEncoded(d.ctx, q)
	if err != nil {
		return err
	}
	g := grid{header: []string{"", "id", "time", "mag", "net", "status", "place"}, right: []int{0, 3}}
	for i, item := range p.Items {
		var e event
		if err := json.Unmarshal(item.Bytes, &e); err != nil {
			return err
		}
		g.rows = append(g.rows, []string{
			fmt.Sprint(i + 1), item.ID, time.UnixMilli(e.Time).UTC().Format("2006-01-02 15:04:05"), e.Mag.String(), e.Net, e.Status,
			cut(printable(e.Place), 44),
		})
	}
	if err := d.s.grid(g, "  "); err != nil {
		return err
	}
	words := "complete: nothing that was trimmed or lost can belong here"
	if !p.Complete {
		words = incompletePage
	}
	d.say("  %s", words)
	return nil
}

// update reviews one earthquake and corrects its magnitude: its entries move in two indexes.
func (d *demo) update() error {
	line, e := oneToReview()
	if line == nil {
		return fmt.Errorf("no automatic earthquake of the network %s", shownNetwork)
	}
	const mag = "6.4"
	d.title("   An update: %s is reviewed, and its magnitude becomes %s instead of %s", e.ID, mag, e.Mag)
	changed := strings.Replace(string(line), `"status":"automatic"`, `"status":"reviewed"`, 1)
	changed = strings.Replace(changed, `"mag":`+e.Mag.String()+`,`, `"mag":`+mag+`,`, 1)
	outcomes, err := d.quakes.PutEncoded(d.ctx, [][]byte{[]byte(changed)})
	if err != nil {
		return err
	}
	if err := outcomes[0].Err; err != nil {
		return err
	}
	if err := d.counts("status=automatic", "status=reviewed"); err != nil {
		return err
	}
	return d.page("strongest", 3, shownNetwork)
}

// oneToReview is the first automatic earthquake of the network that is shown.
func oneToReview() (line []byte, e event) {
	for line := range quakes.Lines() {
		var e event
		if json.Unmarshal(line, &e) == nil && e.Net == shownNetwork && e.Status == "automatic" {
			return line, e
		}
	}
	return nil, e
}
