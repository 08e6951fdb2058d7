// Command lockstep keeps secondary indexes over JSON records on Redis: it loads, finds, counts and deletes records of an
// entity type that a schema file declares.
//
//	lockstep demo
//	lockstep -s quakes.yaml load quakes.jsonl
//	lockstep -s quakes.yaml count status=automatic
//
// Run lockstep --help for the rest. A program with typed entities embeds the same commands with package cli.
package main

import (
	"context"
	"os"

	"github.com/lockstep-go/lockstep/cli"
)

func main() { os.Exit(cli.New().Run(context.Background(), os.Args[1:])) }
