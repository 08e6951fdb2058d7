// Package lua holds the scripts that the server runs for Lockstep, one file a script, each with a typed Go wrapper.
//
// No other package sends a script. A wrapper turns a typed call into KEYS and ARGV, sends it so that nothing below it
// repeats it, and turns the reply into typed values; the header of the .lua file is the contract of both sides. Every key
// that a script touches is in KEYS: no name is built inside Lua.
package lua
