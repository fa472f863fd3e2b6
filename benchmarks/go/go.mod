// A light API server for benchmarks; it needs nothing but Go's own library.
module podium.invalid/benchmarks

go 1.26.0
