#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# collector.sh: prints the path of a program with the OpenTelemetry Collector's receiver otlp and its exporter debug: it takes the address to
# listen at. Debian has none: it is built from the collector's Go modules on the first call, and kept in the user's cache folder. What the
# collector reads its configuration with and reports its own state by is not there: that is a third of it.
set -eu
version=0.158.0 stable=1.64.0
program=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/otlp-debug-$version

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
			go.opentelemetry.io/collector/exporter v$stable
			go.opentelemetry.io/collector/exporter/debugexporter v$version
			go.opentelemetry.io/collector/exporter/xexporter v$version
			go.opentelemetry.io/collector/pdata v$stable
			go.opentelemetry.io/collector/receiver v$stable
			go.opentelemetry.io/collector/receiver/otlpreceiver v$version
			go.opentelemetry.io/collector/receiver/xreceiver v$version
		)
	END
	cat >main.go <<-END
		package main

		import (
			"context"
			"log"
			"os"
			"os/signal"
			"syscall"

			"go.opentelemetry.io/collector/component"
			"go.opentelemetry.io/collector/confmap"
			"go.opentelemetry.io/collector/exporter"
			"go.opentelemetry.io/collector/exporter/debugexporter"
			"go.opentelemetry.io/collector/exporter/xexporter"
			"go.opentelemetry.io/collector/pdata/pcommon"
			"go.opentelemetry.io/collector/receiver"
			"go.opentelemetry.io/collector/receiver/otlpreceiver"
			"go.opentelemetry.io/collector/receiver/xreceiver"
			metrics "go.opentelemetry.io/otel/metric/noop"
			traces "go.opentelemetry.io/otel/trace/noop"
			"go.uber.org/zap"
		)

		type settings = map[string]any

		type host struct{}

		func (host) GetExtensions() map[component.ID]component.Component { return nil }

		func check(err error) {
			if err != nil {
				log.Fatal(err)
			}
		}

		func configured(factory component.Factory, changes settings) component.Config {
			config := factory.CreateDefaultConfig()
			check(confmap.NewFromStringMap(changes).Unmarshal(config))
			return config
		}

		func main() {
			logger, err := zap.NewDevelopment()
			check(err)
			telemetry := component.TelemetrySettings{
				Logger:         logger,
				MeterProvider:  metrics.NewMeterProvider(),
				TracerProvider: traces.NewTracerProvider(),
				Resource:       pcommon.NewResource(),
			}
			debug := debugexporter.NewFactory().(xexporter.Factory)
			otlp := otlpreceiver.NewFactory().(xreceiver.Factory)
			context := context.Background()
			to, err := debug.CreateProfiles(context,
				exporter.Settings{ID: component.NewID(debug.Type()), TelemetrySettings: telemetry},
				configured(debug, settings{"verbosity": "detailed"}))
			check(err)
			from, err := otlp.CreateProfiles(context,
				receiver.Settings{ID: component.NewID(otlp.Type()), TelemetrySettings: telemetry},
				configured(otlp, settings{"protocols": settings{"http": settings{"endpoint": os.Args[1]}}}), to)
			check(err)
			ended := make(chan os.Signal, 1)
			signal.Notify(ended, syscall.SIGTERM)
			check(to.Start(context, host{}))
			check(from.Start(context, host{}))
			<-ended
			check(from.Shutdown(context))
			check(to.Shutdown(context))
		}
	END
	echo "collector.sh: building parts of the OpenTelemetry Collector $version" >&2
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
