module example.com/go-hello

go 1.24

require configurator.dev/sdk v0.0.0

replace configurator.dev/sdk => ./../../guest-sdk/go
