package index

import (
	"errors"
	"fmt"
	"strings"
)

// Check reports what is wrong with a set of entity types that share a store: each declaration's own errors, two of one
// name and version, and an owner that is a prefix of another one, so that a purge or an ACL rule of the first would take
// in the second. nil if nothing is.
func Check(entities ...Declared) error {
	var errs []error
	for i, a := range entities {
		if err := a.Err(); err != nil {
			errs = append(errs, err)
		}
		for _, b := range entities[:i] {
			switch {
			case a.String() == b.String() && a.Version() == b.Version():
				errs = append(errs, &Error{Op: "check", Entity: a.String(), Err: fmt.Errorf("%w: declared twice", ErrInvalid)})
			case nested(a.Owner(), b.Owner()), nested(b.Owner(), a.Owner()):
				errs = append(errs, &Error{Op: "check", Entity: a.String(), Err: fmt.Errorf(
					"%w: one of the owners %q and %q is a prefix of the other", ErrInvalid, b.Owner(), a.Owner())})
			}
		}
	}
	return errors.Join(errs...)
}

// nested reports whether outer is a proper prefix of inner at a separator.
func nested(outer, inner string) bool { return strings.HasPrefix(inner, outer+":") }
