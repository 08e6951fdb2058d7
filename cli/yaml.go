package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// problems reads YAML strictly and collects everything that is wrong, each with its line.
type problems struct {
	file string
	list []problem
}

type problem struct {
	line int
	text string
}

func (p *problems) add(line int, format string, args ...any) {
	p.list = append(p.list, problem{line, fmt.Sprintf(format, args...)})
}

// err is all problems in the order of the file, a line for each, or nil.
func (p *problems) err() error {
	slices.SortStableFunc(p.list, func(a, b problem) int { return a.line - b.line })
	errs := make([]error, len(p.list))
	for i, pr := range p.list {
		errs[i] = fmt.Errorf("%s:%d: %s", p.file, pr.line, strings.ReplaceAll(pr.text, "\n", "; "))
	}
	return errors.Join(errs...)
}

// yamlError is how the parser begins its errors.
var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document parses the only document of a file, nil if it is none.
func (p *problems) document(text []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		p.add(1, "the file is empty")
		return nil
	case err != nil:
		line := 1
		if m := yamlError.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			line, _ = strconv.Atoi(m[1])
		}
		p.add(line, "not YAML: %s", yamlError.ReplaceAllString(err.Error(), ""))
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		p.add(root.Line, "the file must hold keys such as owner, entity and indexes, not %s", describe(root))
		return nil
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		p.add(second.Line, "a second document: a schema file declares one entity type")
	} else if !errors.Is(err, io.EOF) {
		p.add(root.Line, "not YAML: %v", err)
	}
	return root
}

// pair is one entry of a mapping.
type pair struct{ key, value *yaml.Node }

// pairs gives the entries of a mapping with distinct text keys. of is what the mapping is about, for errors.
func (p *problems) pairs(n *yaml.Node, of string) []pair {
	if n.Kind != yaml.MappingNode {
		p.add(n.Line, "%s must hold keys with values, not %s", of, describe(n))
		return nil
	}
	first := map[string]int{}
	var out []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || k.Tag != "!!str" {
			p.add(k.Line, "%sa key must be a text, not %s", prefix(of), describe(k))
			continue
		}
		if line, again := first[k.Value]; again {
			p.add(k.Line, "%s%q is there twice, first at line %d", prefix(of), k.Value, line)
			continue
		}
		first[k.Value] = k.Line
		out = append(out, pair{k, n.Content[i+1]})
	}
	return out
}

// mapping gives the values of a mapping by their keys, which must be among known. It is nil for anything else.
func (p *problems) mapping(n *yaml.Node, of string, known []string) map[string]*yaml.Node {
	before := len(p.list)
	entries := p.pairs(n, of)
	if entries == nil && len(p.list) > before {
		return nil
	}
	m := make(map[string]*yaml.Node, len(entries))
	for _, e := range entries {
		if !slices.Contains(known, e.key.Value) {
			hint := didYouMean(e.key.Value, known)
			if hint == "" {
				hint = ": there are " + strings.Join(known, ", ")
			}
			p.add(e.key.Line, "%sunknown key %q%s", prefix(of), e.key.Value, hint)
			continue
		}
		m[e.key.Value] = e.value
	}
	return m
}

func prefix(of string) string {
	if of == "" {
		return ""
	}
	return of + ": "
}

// text reads a text that is not empty; no node gives "".
func (p *problems) text(n *yaml.Node, what string) string {
	switch {
	case n == nil:
		return ""
	case n.Kind != yaml.ScalarNode || n.Tag != "!!str":
		hint := ""
		if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
			hint = fmt.Sprintf(": write %q in quotes", n.Value)
		}
		p.add(n.Line, "%s must be a text, not %s%s", what, describe(n), hint)
		return ""
	case n.Value == "":
		p.add(n.Line, "%s is empty", what)
	}
	return n.Value
}

// integer reads a number from 1 up; no node gives 0.
func (p *problems) integer(n *yaml.Node, what string) int { return p.number(n, what, 1) }

// natural reads a number from 0 up; no node gives 0.
func (p *problems) natural(n *yaml.Node, what string) int { return p.number(n, what, 0) }

func (p *problems) number(n *yaml.Node, what string, least int) int {
	if n == nil {
		return 0
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
		p.add(n.Line, "%s must be a whole number, not %s", what, describe(n))
		return 0
	}
	v, err := strconv.Atoi(n.Value)
	if err != nil || v < least {
		p.add(n.Line, "%s must be a number from %d up, not %s", what, least, n.Value)
		return 0
	}
	return v
}

// boolean reads true or false; no node gives false.
func (p *problems) boolean(n *yaml.Node, what string) bool {
	if n == nil {
		return false
	}
	var v bool
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&v) != nil {
		p.add(n.Line, "%s must be true or false, not %s", what, describe(n))
	}
	return v
}

// describe names what a node is.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return "the truth value " + n.Value
	case "!!str":
		return fmt.Sprintf("the text %q", n.Value)
	}
	return n.Tag + " " + n.Value
}
