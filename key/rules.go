package key

// Rules say what one store allows in a key: how long a key and a segment may
// be, and which bytes have to be escaped. There is a fixed set of them, Redis
// and Memcached, because Parse has to know every spelling that a builder may
// have chosen. The zero Rules are those of Redis. Rules are comparable.
type Rules struct {
	name       string
	maxKey     int
	maxSegment int
	mode       mode
	untrusted  bool
}

var (
	// Redis limits a segment to 256 encoded bytes; a longer one becomes a
	// digest. Bytes from 0x80 up and spaces stay as they are. With names inside
	// their limits no key is longer than 1024 bytes, so no id and no value is
	// ever refused.
	Redis = Rules{name: "redis", maxKey: 1024, maxSegment: 256}

	// Memcached limits a key to 250 bytes and a segment to the 66 bytes of a
	// digest, so that a plain segment never needs more room than a digested
	// one. Spaces and bytes from 0x80 up are escaped. NewSpace refuses names
	// that would leave no room for a record; an index entry or a record with a
	// field can still be too long, which is ErrTooLong.
	Memcached = Rules{name: "memcached", maxKey: 250, maxSegment: digestLen, mode: modeASCII}
)

// Untrusted returns the rules with every id, every index value and every tag
// name turned into a digest, whatever its length: nothing that a user typed
// shows in a key. Only a tag with the name of the entity itself stays plain.
// Field names stay plain too; they come from code. The bytes of an id then
// have to be read from the record. A digest without a secret hides no value
// that can be guessed.
func (r Rules) Untrusted() Rules {
	r = r.orRedis()
	r.untrusted = true
	return r
}

// Name returns the name of the store the rules are for, such as "redis".
func (r Rules) Name() string { return r.orRedis().name }

// MaxKey returns how many bytes a key may have.
func (r Rules) MaxKey() int { return r.orRedis().maxKey }

// MaxSegment returns how many encoded bytes an id, a value, a field or the
// name of a tag may have before it becomes a digest.
func (r Rules) MaxSegment() int { return r.orRedis().maxSegment }

func (r Rules) orRedis() Rules {
	if r.name == "" {
		return Redis
	}
	return r
}
