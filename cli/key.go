package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/key"
)

func newKeyCommand(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Take keys apart, make them, and say in which slot they live",
		Long:  "Take keys apart, make them, and say in which slot of a cluster they live. No server is asked.",
		Example: s.examples(
			"key parse 'usgs:feed:quake:{quake}:ci37868143:v1'",
			"key build --owner usgs:feed --type quake --id ci37868143",
			"key slot 'usgs:feed:quake:{quake}:ci37868143:v1'",
		),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeyParseCommand(s), newKeyBuildCommand(s), newKeySlotCommand(s))
	return cmd
}

func newKeyParseCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "parse KEY",
		Short: "Print every part of a key",
		Long: `Print what a key is made of: kind, owner, entity, version, tag, slot, and the parts that its kind has. A segment that was
too long, or private, is in the key as a digest only. A key that Lockstep did not make is an error, with exit code 1.`,
		Example: s.examples("key parse 'usgs:feed:quake:{quake}:ci37868143:v1'"),
		Args:    cobra.ExactArgs(1),
		RunE: s.run(func(_ context.Context, args []string) error {
			p, err := key.Parse(args[0])
			if err != nil {
				return finding{fmt.Errorf("%q: %w", args[0], err)}
			}
			return s.parsed(args[0], p)
		}),
	}
}

// parsed prints the parts of a key.
func (s *session) parsed(k string, p key.Parsed) error {
	rows := [][2]string{
		{"kind", p.Kind.String()},
		{"owner", p.Owner},
		{"entity", p.Entity},
		{"version", strconv.Itoa(p.Version)},
	}
	if p.Kind != key.KindCatalog {
		rows = append(rows, [2]string{"tag", p.Tag.String()})
		if i, ok := p.Tag.Bucket(); ok {
			rows = append(rows, [2]string{"bucket", strconv.Itoa(i)})
		}
	}
	switch p.Kind {
	case key.KindRecord:
		word := "id"
		if p.Digested {
			word = "id digest"
		}
		rows = append(rows, [2]string{word, p.ID})
		if p.HasField {
			if word = "field"; p.FieldDigested {
				word = "field digest"
			}
			rows = append(rows, [2]string{word, p.Field})
		}
	case key.KindIndex:
		rows = append(rows, [2]string{"index", p.Index}, [2]string{"generation", strconv.Itoa(p.Gen)})
		if p.HasValue {
			rows = append(rows, [2]string{"value", p.Value.String()}, [2]string{"value kind", p.Value.Kind()})
		}
	}
	rows = append(rows, [2]string{"slot", strconv.Itoa(key.Slot(k))})
	if !s.json {
		return s.table(rows)
	}
	out := map[string]any{}
	for _, r := range rows {
		switch r[0] {
		case "version", "bucket", "generation", "slot":
			n, err := strconv.Atoi(r[1])
			if err != nil {
				return err
			}
			out[r[0]] = n
		default:
			out[r[0]] = textOf(r[1])
		}
	}
	return s.value(out)
}

func newKeySlotCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:     "slot KEY...",
		Short:   "Print the cluster slot of keys",
		Long:    "Print the slot, 0 to 16383, in which a cluster keeps each key. Any text has one.",
		Example: s.examples("key slot 'usgs:feed:quake:{quake}:ci37868143:v1' other"),
		Args:    cobra.MinimumNArgs(1),
		RunE: s.run(func(_ context.Context, keys []string) error {
			for _, k := range keys {
				var err error
				if s.json {
					err = s.value(map[string]any{"key": textOf(k), "slot": key.Slot(k)})
				} else {
					err = s.line(fmt.Sprintf("%5d  %s", key.Slot(k), k))
				}
				if err != nil {
					return err
				}
			}
			return nil
		}),
	}
}
