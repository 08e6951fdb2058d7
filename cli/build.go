package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/index"
	"github.com/lockstep-go/lockstep/key"
	"github.com/lockstep-go/lockstep/membership"
)

// keyParts are the flags of key build.
type keyParts struct {
	owner, entity string
	version       int
	id, field     string
	index, value  string
	kind          string
	generation    int
}

func newKeyBuildCommand(s *session) *cobra.Command {
	var parts keyParts
	where := "The entity type is that of the program"
	if len(s.app.entities) == 0 {
		where = "The entity type is that of the schema (-s), or is given by --owner, --type and --version"
	}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Make the key of a record or of an index value",
		Long: `Print the key of a record (--id, and --field for a part of it kept under a key of its own) or of the set of ids that have a
value in an index (--index and --value). An index by order has one key, or one for each group: its --value is the group.
` + where + `.

A value is a text unless --kind or the declaration of the index says otherwise; a declared index also folds and trims it as
it does when it writes. The generation of an index definition is 1 until the definition is changed.`,
		Example: s.buildExamples(),
		Args:    cobra.NoArgs,
	}
	f := cmd.Flags()
	if len(s.app.entities) == 0 {
		f.StringVar(&parts.owner, "owner", "", "owner of the keys, such as acme:billing")
		f.StringVar(&parts.entity, "type", "", "name of the entity type")
		f.IntVar(&parts.version, "version", 1, "format version of the keys")
		cmd.MarkFlagsRequiredTogether("owner", "type")
	}
	f.StringVar(&parts.id, "id", "", "id of a record")
	f.StringVar(&parts.field, "field", "", "field of the record that has a key of its own")
	f.StringVar(&parts.index, "index", "", "name of an index")
	f.StringVar(&parts.value, "value", "", "value in the index, or group of an index by order")
	f.StringVar(&parts.kind, "kind", "", "kind of the value: string, number or bool")
	f.IntVar(&parts.generation, "generation", 1, "generation of the index definition")
	cmd.MarkFlagsMutuallyExclusive("id", "index")
	cmd.MarkFlagsOneRequired("id", "index")
	cmd.MarkFlagsMutuallyExclusive("id", "value")
	cmd.MarkFlagsMutuallyExclusive("id", "kind")
	cmd.MarkFlagsMutuallyExclusive("index", "field")
	cmd.RunE = s.run(func(context.Context, []string) error {
		k, err := s.build(parts, cmd.Flags().Changed)
		if err != nil {
			return err
		}
		if s.json {
			return s.value(map[string]any{"key": textOf(k), "slot": key.Slot(k)})
		}
		return s.line(k)
	})
	return cmd
}

func (s *session) buildExamples() string {
	lines := []string{"key build --id a1", "key build --index status --value active"}
	if len(s.app.entities) == 0 {
		return s.examples(
			"key build --owner acme:billing --type account --id a1",
			"key build --owner acme:billing --type account --index balance --value 12.50 --kind number",
		)
	}
	return s.examples(lines...)
}

// build makes the key. given tells which flags there are.
func (s *session) build(parts keyParts, given func(flag string) bool) (string, error) {
	var t target
	var space key.Space
	var err error
	if parts.owner != "" {
		if s.schemaFile != "" {
			return "", errors.New("give either a schema or --owner and --type")
		}
		space, err = key.NewSpace(parts.owner, parts.entity, parts.version, key.Redis)
	} else if t, err = s.target(); err == nil {
		space, err = t.Space(), t.Err()
	} else if len(s.app.entities) == 0 && s.schemaFile == "" {
		err = errors.New("which entity type? give --owner and --type, or a schema (-s)")
	}
	if err != nil {
		return "", err
	}
	part, err := space.Partition(key.Single(space.Entity()))
	if err != nil {
		return "", err
	}
	if !given("index") {
		if given("field") {
			return part.Record(parts.id, parts.field)
		}
		return part.Record(parts.id)
	}
	value, err := t.keyValue(parts, given("value"))
	if err != nil {
		return "", err
	}
	body, err := space.RankedBody(parts.index, parts.generation, value)
	if err != nil {
		return "", err
	}
	return part.Entry(body)
}

// keyValue is the value or the group as the index writes it, nil where its key has none.
func (t target) keyValue(parts keyParts, given bool) (*key.Value, error) {
	kind := parts.kind
	var d index.Definition
	what, encoding := "value", ""
	if t.Declared != nil {
		if err := t.hasIndex(parts.index); err != nil {
			return nil, err
		}
		for _, d = range t.Definitions() {
			if d.Name == parts.index {
				break
			}
		}
		encoding = d.Encoding
		if d.Kind == "ranked" {
			what, encoding = "group", d.Group
		}
	}
	switch {
	case what == "group" && encoding == "" && given:
		return nil, fmt.Errorf("index %s is an order over all records and has one key: leave --value out", d.Name)
	case what == "group" && encoding == "":
		return nil, nil
	case !given:
		return nil, fmt.Errorf(`--index %s needs --value: the index has a key for each %s (--value "" is the empty text)`, parts.index, what)
	}
	if encoding != "" {
		if kind == "" {
			kind = map[string]string{"text": "string", "number": "number", "bool": "bool", "any": "string"}[encoding]
		}
		if kind == "" {
			return nil, fmt.Errorf("index %s has %ss of the kind %s: they cannot be given as a text", d.Name, what, encoding)
		}
	}
	var value key.Value
	switch kind {
	case "", "string", "number", "bool":
		read, err := (&field{kind: kind}).reading(parts.value)
		if err != nil {
			return nil, err
		}
		value = read[0]
	default:
		return nil, fmt.Errorf("--kind %q is none of string, number, bool", kind)
	}
	value, err := normalised(d, value)
	return &value, err
}

// normalised applies what the definition of an index says about its values.
func normalised(d index.Definition, value key.Value) (key.Value, error) {
	var o []membership.Option
	for _, n := range d.Normalisers {
		switch n {
		case "fold":
			o = append(o, membership.Fold)
		case "trim":
			o = append(o, membership.Trim)
		default:
			return value, fmt.Errorf("index %s normalises its values in code: this command cannot", d.Name)
		}
	}
	if d.Digest {
		o = append(o, membership.Digest)
	}
	entries, err := membership.New("value", func(Document) key.Value { return value }, o...).Entries(Document{})
	if err != nil {
		return value, err
	}
	return entries[0].Value, nil
}
