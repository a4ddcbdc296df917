// Decodes the protobuf exposition format with the messages of io/prometheus/client/metrics.proto.

import protobuf from 'protobufjs';

export interface DecodedFamily {
  name: string;
  type: string;
  metric: DecodedMetric[];
}

export interface DecodedMetric {
  label?: { name: string; value: string }[];
  counter?: { value: number };
  gauge?: { value: number };
  summary?: { sampleCount: number; sampleSum: number; quantile: { quantile: number; value: number }[] };
  histogram?: {
    sampleCount: number;
    sampleSum: number;
    bucket?: { cumulativeCount: number; upperBound: number }[];
    schema?: number;
    zeroThreshold?: number;
    zeroCount?: number;
    positiveSpan?: { offset: number; length: number }[];
    positiveDelta?: number[];
  };
}

const PROTO = `
syntax = "proto2";
message LabelPair { optional string name = 1; optional string value = 2; }
enum MetricType { COUNTER = 0; GAUGE = 1; SUMMARY = 2; UNTYPED = 3; HISTOGRAM = 4; GAUGE_HISTOGRAM = 5; }
message Gauge { optional double value = 1; }
message Counter { optional double value = 1; }
message Quantile { optional double quantile = 1; optional double value = 2; }
message Summary { optional uint64 sample_count = 1; optional double sample_sum = 2; repeated Quantile quantile = 3; }
message Bucket { optional uint64 cumulative_count = 1; optional double upper_bound = 2; }
message BucketSpan { optional sint32 offset = 1; optional uint32 length = 2; }
message Histogram {
  optional uint64 sample_count = 1; optional double sample_sum = 2; repeated Bucket bucket = 3;
  optional sint32 schema = 5; optional double zero_threshold = 6; optional uint64 zero_count = 7;
  repeated BucketSpan positive_span = 12; repeated sint64 positive_delta = 13;
}
message Metric {
  repeated LabelPair label = 1; optional Gauge gauge = 2; optional Counter counter = 3; optional Summary summary = 4;
  optional Histogram histogram = 7;
}
message MetricFamily { optional string name = 1; optional MetricType type = 3; repeated Metric metric = 4; }
`;

const MetricFamily = protobuf.parse(PROTO).root.lookupType('MetricFamily');

/** Decodes all families of an answer in order. Throws if the bytes are invalid. */
export function decodeFamilies(bytes: Uint8Array): DecodedFamily[] {
  const reader = protobuf.Reader.create(bytes);
  const families: DecodedFamily[] = [];
  while (reader.pos < reader.len) {
    const message = MetricFamily.decodeDelimited(reader);
    families.push(MetricFamily.toObject(message, { longs: Number, enums: String }) as DecodedFamily);
  }
  return families;
}
