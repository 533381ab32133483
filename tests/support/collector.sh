#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# collector.sh: prints the path of an OpenTelemetry Collector with the receiver otlp and the exporter debug. Debian has none: it is built
# from its Go modules on the first call, and kept in the user's cache folder.
set -eu
version=0.158.0 stable=1.64.0
program=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/otelcol-$version

build() (
	mkdir -p "${program%/*}" && folder=$(mktemp -d "${program%/*}/build.XXXXXX") || exit
	trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
	trap 'exit 130' INT TERM
	cd "$folder" || exit
	cat >go.mod <<-END
		module collector
		go 1.25
		require (
			go.opentelemetry.io/collector/component v$stable
			go.opentelemetry.io/collector/confmap v$stable
			go.opentelemetry.io/collector/confmap/provider/fileprovider v$stable
			go.opentelemetry.io/collector/exporter v$stable
			go.opentelemetry.io/collector/exporter/debugexporter v$version
			go.opentelemetry.io/collector/otelcol v$version
			go.opentelemetry.io/collector/receiver v$stable
			go.opentelemetry.io/collector/receiver/otlpreceiver v$version
			go.opentelemetry.io/collector/service v$version
		)
	END
	cat >main.go <<-END
		package main

		import (
			"log"

			"go.opentelemetry.io/collector/component"
			"go.opentelemetry.io/collector/confmap"
			"go.opentelemetry.io/collector/confmap/provider/fileprovider"
			"go.opentelemetry.io/collector/exporter"
			"go.opentelemetry.io/collector/exporter/debugexporter"
			"go.opentelemetry.io/collector/otelcol"
			"go.opentelemetry.io/collector/receiver"
			"go.opentelemetry.io/collector/receiver/otlpreceiver"
			"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
		)

		func factories() (otelcol.Factories, error) {
			return otelcol.Factories{
				Telemetry: otelconftelemetry.NewFactory(),
				Receivers: map[component.Type]receiver.Factory{
					component.MustNewType("otlp"): otlpreceiver.NewFactory(),
				},
				Exporters: map[component.Type]exporter.Factory{
					component.MustNewType("debug"): debugexporter.NewFactory(),
				},
			}, nil
		}

		func main() {
			resolver := confmap.ResolverSettings{
				DefaultScheme:     "file",
				ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
			}
			settings := otelcol.CollectorSettings{
				BuildInfo:              component.BuildInfo{Command: "collector", Version: "$version"},
				Factories:              factories,
				ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: resolver},
			}
			if err := otelcol.NewCommand(settings).Execute(); err != nil {
				log.Fatal(err)
			}
		}
	END
	echo "collector.sh: building the OpenTelemetry Collector $version" >&2
	export GOTOOLCHAIN=local GOFLAGS=-mod=mod
	# It runs for a second: optimizing it would take a third of the time. `go mod tidy` would fetch the modules' tests, too.
	go build -gcflags='all=-N -l' -ldflags='-s -w' -o collector . >&2 && mv collector "$program"
)

if [ ! -x "$program" ]; then
	case $(go env GOVERSION 2>/dev/null) in
	go1.2[5-9]* | go1.[3-9][0-9]*) ;;
	*) echo "collector.sh: Go 1.25 or newer is missing" >&2; exit 77 ;;
	esac
	build || { echo "collector.sh: the OpenTelemetry Collector could not be built from its Go modules" >&2; exit 77; }
fi
echo "$program"
