#!/bin/sh
# Reads one JSON document on stdin, and tells what happens on the descriptor that ODE_EVENTS_FD names, which is 3.
# A shell has no JSON of its own: this takes one field out of it as far as it has no quotes in it. Use jq for more.
payload=$(cat)
name=$(printf '%s' "$payload" | sed 's/.*"name":"\([^"]*\)".*/\1/')

tell() { printf '%s\n' "$1" >&3; }

tell '{"t":"step","id":"prepare","state":"started"}'
tell '{"t":"checkpoint","key":"prepared","data":{}}'
tell '{"t":"step","id":"prepare","state":"done"}'

tell '{"t":"step","id":"greet","state":"started"}'
echo "Greeting $name"
tell '{"t":"progress","percent":50,"message":"Half way"}'
tell '{"t":"step","id":"greet","state":"done"}'

tell "{\"t\":\"result\",\"success\":true,\"message\":\"Greeted $name\",\"data\":{\"greeting\":\"Hello, $name!\"}}"
