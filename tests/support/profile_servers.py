# SPDX-License-Identifier: BSD-2-Clause
"""The rules by which Pyroscope and Parca accept a profile, each with its place in their sources."""
import gzip
import re
import subprocess

import protobuf

# Of github.com/google/pprof, proto/profile.proto; parca/profilestore/v1alpha1/profilestore.proto;
# opentelemetry/proto/collector/profiles/v1development/profiles_service.proto and what that includes.
MESSAGES = """syntax = "proto3";
message Profile { repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3;
  repeated Location location = 4; repeated Function function = 5; repeated string string_table = 6;
  int64 time_nanos = 9; int64 duration_nanos = 10; ValueType period_type = 11; int64 period = 12;
  int64 default_sample_type = 14; }
message ValueType { int64 type = 1; int64 unit = 2; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Label { int64 key = 1; int64 str = 2; }
message Mapping { uint64 id = 1; uint64 memory_start = 2; uint64 memory_limit = 3; uint64 file_offset = 4; int64 filename = 5;
  int64 build_id = 6; bool has_functions = 7; bool has_filenames = 8; bool has_line_numbers = 9; }
message Location { uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; }
message Line { uint64 function_id = 1; int64 line = 2; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; }
message WriteRawRequest { string tenant = 1; repeated Series series = 2; bool normalized = 3; }
message Series { LabelSet labels = 1; repeated RawSample samples = 2; }
message LabelSet { repeated NameAndValue labels = 1; }
message NameAndValue { string name = 1; string value = 2; }
message RawSample { bytes raw_profile = 1; }
message ExportProfilesServiceRequest { repeated ResourceProfiles resource_profiles = 1; }
message ResourceProfiles { Resource resource = 1; }
message Resource { repeated KeyValue attributes = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { string string_value = 1; }
"""
HOUR_S = 3600


class Refused(Exception):
    """With the status and the words of the server."""


def refuse_if(condition, status, words):
    if condition:
        raise Refused(status, words)


def decode(folder, kind, content):
    (folder / "messages.proto").write_text(MESSAGES)
    done = subprocess.run(["protoc", f"--decode={kind}", "messages.proto"], cwd=folder, input=content,
                          capture_output=True, check=True)
    return protobuf.parse(done.stdout.decode())


class Pprof:
    """What a profile says, with the names instead of their numbers."""

    def __init__(self, folder, content):
        self.message = decode(folder, "Profile", gzip.decompress(content))
        self.strings = self.message["string_table"]
        self.types = [self.value_type(each) for each in self.message.get("sample_type", ())]
        self.period_type = self.value_type(self.message["period_type"][0]) if "period_type" in self.message else ("", "")
        self.period = self.message.get("period", [0])[0]
        self.default = self.strings[self.message["default_sample_type"][0]]
        self.time_s = self.message.get("time_nanos", [0])[0] / 1e9
        self.samples = self.message.get("sample", [])

    def value_type(self, message):
        return self.strings[message["type"][0]], self.strings[message["unit"][0]]

    def labels(self, sample):
        return {self.strings[label["key"][0]]: self.strings[label["str"][0]] for label in sample.get("label", ())}

    def ids(self, kind):
        return [each.get("id", [0])[0] for each in self.message.get(kind, ())]


def pyroscope(pprof, name, now_s):
    """grafana/pyroscope of 2026-08 with its default limits: POST /ingest with format=pprof."""
    # pkg/ingester/pyroscope/ingest_handler.go, parseInputMetadataFromRequest; api/model/labelset/validate.go
    application, labels = re.fullmatch(r"(.*?)\{(.*)\}", name).groups()
    refuse_if(not re.fullmatch(r"[\w.\-/]+", application, re.A), 400, "name: invalid service name")
    for label in labels.split(","):
        refuse_if(not re.fullmatch(r"[\w.]+", label.split("=")[0], re.A), 400, "name: invalid label name")
    # pkg/validation/validate.go, ValidateProfile, in its order; pkg/validation/limits.go has the hour
    refuse_if(not pprof.types, 422, "empty profile")
    refuse_if(0 < pprof.time_s <= now_s - HOUR_S, 422,
              f"profile with labels '{name}' is outside of ingestion window (profile timestamp: {pprof.time_s}, "
              f"the ingestion window starts at {now_s - HOUR_S})")
    refuse_if(0 in pprof.ids("location"), 422, "location id is 0")
    refuse_if(0 in pprof.ids("function"), 422, "function id is 0")
    for sample in pprof.samples:
        refuse_if(len(sample["value"]) != len(pprof.types), 422, "sample value length mismatch")
    refuse_if(pprof.strings[0] != "", 422, "string 0 should be empty string")
    refuse_if(any("-" in kind for kind, unit in pprof.types), 422, "sample type contains -")


def parca(folder, request):
    """parca-dev/parca of 2026-07: ProfileStoreService.WriteRaw with `request`. Returns the labels and the profile."""
    [series] = decode(folder, "WriteRawRequest", request)["series"]
    labels = {}
    # pkg/normalizer/normalizer.go, NormalizeWriteRawRequest
    for label in series["labels"][0]["labels"]:
        name = label["name"][0]
        refuse_if(not re.fullmatch(r"[a-zA-Z_]\w*", name, re.A), 3, f"invalid label name: {name}")
        refuse_if(name in labels, 3, f"duplicate label name: {name}")
        labels[name] = label["value"][0]
    refuse_if(not labels.get("__name__"), 3, "missing __name__ label")
    pprof = Pprof(folder, series["samples"][0]["raw_profile"][0].encode("latin-1"))
    # pkg/normalizer/validate.go, ValidatePprofProfile
    refuse_if(pprof.strings[0] != "", 3, "invalid profile: first item in string table is expected to be empty string")
    for kind in "mapping", "function", "location":
        ids = pprof.ids(kind)
        refuse_if(ids != list(range(1, len(ids) + 1)), 3, f"invalid profile: {kind} id is not sequential")
    for sample in pprof.samples:
        refuse_if(len(sample["value"]) != len(pprof.types), 3, "invalid profile: mismatch")
    # pkg/profilestore/profilecolumnstore.go, writeSeries: not a gRPC error, so that its status is 2
    for kind in pprof.types:
        parts = (labels["__name__"], *kind, *pprof.period_type)
        name = ":".join(parts) + (":delta" if pprof.message.get("duration_nanos", [0])[0] else "")
        refuse_if(not re.fullmatch(r"[a-zA-Z_:][\w:]*", name, re.A), 2, f"invalid profile type at row 0 ({name})")
    return labels, pprof


def grpc_trailers(*lines):
    """The frame of gRPC-Web that ends an answer of Parca's."""
    text = "".join(f"{line}\r\n" for line in lines).encode()
    return b"\x80" + len(text).to_bytes(4, "big") + text


def otlp_resource(folder, request):
    """The attributes of the resource that the profiles of an ExportProfilesServiceRequest are of."""
    [profiles] = decode(folder, "ExportProfilesServiceRequest", request)["resource_profiles"]
    attributes = profiles["resource"][0]["attributes"]
    return {attribute["key"][0]: attribute["value"][0]["string_value"][0] for attribute in attributes}
