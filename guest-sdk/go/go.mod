module configurator.dev/sdk

go 1.24
