package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/index"
)

// noHash stands where the digest of the password belongs; the server refuses it.
const noHash = "SHA256-OF-THE-PASSWORD"

type aclFlags struct {
	user         string
	passwordFile string
	readOnly     bool
	verify       bool
	cluster      bool
	before7      bool
}

func newACLCommand(s *session) *cobra.Command {
	var f aclFlags
	cmd := &cobra.Command{
		Use:   "acl",
		Short: "Print the ACL rule of a user that may do just what the library does",
		Long: `Print the ACL SETUSER command for the user of an application: exactly the commands that the library and its scripts use,
on the keys of its entity types, and nothing else. With --read-only it is for a program that opens its collections with
ReadOnly, which is how find, count, top and get of this tool work; add --verify for one that verifies too.

The password goes in as its SHA-256: replace ` + noHash + `, which the server refuses, or name a file with
--user-password-file. Where the program uses a database other than 0, add +select.

SCAN, which is needed to open an entity type for the first time and for repair, shows the names of all keys of the server,
also of those that the user may not touch; INFO tells how the server is set up.`,
		Example: s.examples("acl --user billing", "acl --read-only --user-password-file secret.txt | redis-cli"),
		Args:    cobra.NoArgs,
		RunE: s.run(func(context.Context, []string) error {
			entities, err := s.aclTargets()
			if err != nil {
				return err
			}
			return s.acl(entities, f)
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.user, "user", "", "`NAME` of the user (default: that of the entity type)")
	fl.StringVar(&f.passwordFile, "user-password-file", "", "`FILE` that holds the user's password")
	fl.BoolVar(&f.readOnly, "read-only", false, "for a user that only queries")
	fl.BoolVar(&f.verify, "verify", false, "with --read-only: add what verify needs")
	fl.BoolVar(&f.cluster, "cluster", false, "add what the client of a cluster needs")
	fl.BoolVar(&f.before7, "redis6", false, "for Redis 6.2, which has neither EVAL_RO nor read-only key patterns")
	return cmd
}

// aclTargets are the entity types that the rule is for: all of the program unless --entity picks one.
func (s *session) aclTargets() ([]index.Declared, error) {
	if len(s.app.entities) > 1 && s.entity == "" {
		if slices.Contains(s.app.entities, nil) {
			return nil, errors.New("an entity type of the program is nil")
		}
		return s.app.entities, index.Check(s.app.entities...)
	}
	t, err := s.target()
	if err != nil {
		return nil, err
	}
	return []index.Declared{t}, t.Err()
}

func (s *session) acl(entities []index.Declared, f aclFlags) error {
	if f.user == "" {
		f.user = entities[0].Name()
		if f.readOnly {
			f.user += "-reader"
		}
	}
	if strings.ContainsAny(f.user, " \t\r\n\x00\"'\\") {
		return errors.New("--user: a user name holds no space and no quote")
	}
	hash := noHash
	if f.passwordFile != "" {
		password, err := passwordIn(f.passwordFile)
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(password))
		hash = hex.EncodeToString(sum[:])
	}
	commands, keys := f.commands(), f.keys(entities)
	rule := "ACL SETUSER " + f.user + " reset on #" + hash + " " + strings.Join(keys, " ") +
		" +" + strings.Join(commands, " +")
	if s.json {
		return s.value(struct {
			User     string   `json:"user"`
			Keys     []string `json:"keys"`
			Commands []string `json:"commands"`
			Rule     string   `json:"rule"`
		}{f.user, keys, commands, rule})
	}
	if hash == noHash {
		s.note("note: ", "replace "+noHash+": printf %s 'the password' | sha256sum")
	}
	return s.line(rule)
}

// keys are the patterns of the rule. A prefix ends with a separator, so that it never takes in another entity type.
func (f aclFlags) keys(entities []index.Declared) []string {
	begin := "~"
	if f.readOnly && !f.before7 {
		begin = "%R~"
	}
	var out []string
	for _, e := range entities {
		out = append(out, begin+e.Space().Prefix()+"*")
	}
	slices.Sort(out)
	return slices.Compact(out)
}
