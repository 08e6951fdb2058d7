package key_test

import (
	"fmt"

	"github.com/lockstep-go/lockstep/key"
)

// Keys without any index: one session each, placed by itself on a cluster.
func ExampleNewSpace() {
	sessions, err := key.NewSpace("acme:web", "session", 1, key.Redis)
	if err != nil {
		panic(err)
	}
	keys, err := sessions.Partition(key.Tag{})
	if err != nil {
		panic(err)
	}
	data, _ := keys.Record("user:7/laptop")
	limit, _ := keys.Record("user:7/laptop", "requests")
	fmt.Println(data)
	fmt.Println(limit)
	// Output:
	// acme:web:session:{}:user%3A7/laptop:v1
	// acme:web:session:{}:user%3A7/laptop:requests:v1
}

// A record, its index entry and the manifest share a tag, and so a slot.
func ExamplePartition() {
	space, _ := key.NewSpace("acme:billing", "account", 2, key.Redis)
	account, _ := space.Partition(key.Single("account"))
	record, _ := account.Record("a1")
	body, _ := space.EntryBody("status", 1, key.Text("suspended"))
	entry, _ := account.Entry(body)
	fmt.Println(record)
	fmt.Println(entry)
	fmt.Println(account.Manifest())
	fmt.Println(account.Slot() == key.Slot(record), account.Slot() == key.Slot(entry))
	// Output:
	// acme:billing:account:{account}:a1:v2
	// acme:billing:account:{account}:~status.1:suspended:v2
	// acme:billing:account:{account}:~~manifest:v2
	// true true
}

func ExampleParse() {
	p, err := key.Parse("acme:billing:account:{account}:~region.1:~peu,~n42:v2")
	fmt.Println(p.Kind, p.Index, p.Gen, p.Value, p.Version, err)
	_, err = key.Parse("acme:billing:account:{account}:%61:v2") // an 'a' needs no escape
	fmt.Println(err)
	// Output:
	// index region 1 (eu, 42) 2 <nil>
	// key: malformed: not an id
}

func ExampleSlot() {
	fmt.Println(key.Slot("foo"), key.Slot("acme:{foo}:a1"))
	// Output: 12182 12182
}

// Four buckets start a quarter of the slots apart.
func ExampleBucket() {
	for i := range 4 {
		tag, _ := key.Bucket("account", i, 4)
		fmt.Println(tag, key.Slot(tag.String()))
	}
	// Output:
	// {account.0.kpQ} 8
	// {account.1.sMJ} 4104
	// {account.2.pSw} 8200
	// {account.3.hnl} 12296
}

func ExampleDecimal() {
	a, _ := key.Decimal("1.10")
	b, _ := key.Decimal("11e-1")
	c, _ := key.Decimal("1e3")
	fmt.Println(a, a == b, c == key.Int(1000))
	// Output: 1.1 true true
}

func ExamplePair() {
	space, _ := key.NewSpace("acme", "order", 1, key.Redis)
	body, _ := space.EntryBody("tenant_status", 1, key.Pair(key.Text("a,b"), key.Text("open")))
	fmt.Println(body)
	// Output: tenant_status.1:~pa%2Cb,open
}
