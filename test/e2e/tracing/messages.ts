// Messages that collectors receive, decoded to plain data.

import protobuf from 'protobufjs';

const { root } = protobuf.parse(
  `syntax = "proto3"; package t;
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
  ArrayValue array_value = 5; KeyValueList kvlist_value = 6; bytes bytes_value = 7; } }
message ArrayValue { repeated AnyValue values = 1; }
message KeyValueList { repeated KeyValue values = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
message Scope { string name = 1; string version = 2; }
message Resource { repeated KeyValue attributes = 1; }
message Traces { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message ScopeSpans { Scope scope = 1; repeated Span spans = 2; }
message Event { fixed64 time_unix_nano = 1; string name = 2; }
message Status { string message = 2; int32 code = 3; }
message Span { bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
  fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9; repeated Event events = 11;
  Status status = 15; fixed32 flags = 16; }
message Logs { repeated ResourceLogs resource_logs = 1; }
message ResourceLogs { Resource resource = 1; repeated ScopeLogs scope_logs = 2; }
message ScopeLogs { repeated LogRecord log_records = 2; }
message LogRecord { fixed64 time_unix_nano = 1; AnyValue body = 5; repeated KeyValue attributes = 6; bytes trace_id = 9; bytes span_id = 10; }
message ZipkinSpans { repeated ZipkinSpan spans = 1; }
message ZipkinSpan { bytes trace_id = 1; bytes parent_id = 2; bytes id = 3; int32 kind = 4; string name = 5; fixed64 timestamp = 6;
  uint64 duration = 7; ZipkinEndpoint local_endpoint = 8; repeated ZipkinAnnotation annotations = 10; map<string, string> tags = 11;
  bool shared = 13; }
message ZipkinEndpoint { string service_name = 1; bytes ipv4 = 2; }
message ZipkinAnnotation { fixed64 timestamp = 1; string value = 2; }
message Segment { string traceId = 1; string traceSegmentId = 2; repeated SegmentSpan spans = 3; string service = 4; string serviceInstance = 5; }
message SegmentSpan { int32 spanId = 1; int32 parentSpanId = 2; int64 startTime = 3; int64 endTime = 4; repeated Reference refs = 5;
  string operationName = 6; string peer = 7; int32 spanType = 8; int32 spanLayer = 9; int32 componentId = 10; bool isError = 11;
  repeated Text tags = 12; repeated Log logs = 13; }
message Reference { int32 refType = 1; string traceId = 2; string parentTraceSegmentId = 3; int32 parentSpanId = 4; string parentService = 5;
  string parentServiceInstance = 6; string parentEndpoint = 7; string networkAddressUsedAtPeer = 8; }
message Text { string key = 1; string value = 2; }
message Log { int64 time = 1; repeated Text data = 2; }
`,
  { keepCase: true },
);

/** A span in the form in which tests compare them. */
export interface TestSpan {
  readonly traceId: string;
  readonly id: string;
  readonly parent: string;
  readonly state: string;
  readonly name: string;
  readonly kind: string;
  readonly startNanos: bigint;
  readonly endNanos: bigint;
  readonly tags: Readonly<Record<string, unknown>>;
  readonly events: readonly string[];
  readonly isError: boolean;
  readonly flags: number;
}

export interface TestTrace {
  readonly resource: Readonly<Record<string, unknown>>;
  readonly scope: string | undefined;
  readonly spans: readonly TestSpan[];
}

interface Pair {
  readonly key?: string;
  readonly value?: Readonly<Record<string, unknown>>;
}

export function decode(type: string, bytes: Uint8Array): Record<string, unknown> {
  const message = root.lookupType(`t.${type}`);
  return message.toObject(message.decode(bytes), { longs: String, arrays: true });
}

/** Returns attributes by name. Values other than texts are shown with their kind. */
export function attributes(pairs: unknown): Record<string, unknown> {
  const all = (pairs as readonly Pair[] | undefined) ?? [];
  return Object.fromEntries(all.map(({ key = '', value = {} }) => [key, shownValue(value)]));
}

export function shownValue(value: Readonly<Record<string, unknown>>): unknown {
  const [kind = '', content] = Object.entries(value)[0] ?? [];
  if (kind === 'kvlist_value') return attributes((content as { readonly values: unknown }).values);
  if (kind === 'array_value')
    return (content as { readonly values: readonly Record<string, unknown>[] }).values.map(shownValue);
  return kind === 'string_value' ? content : `${kind.replace('_value', '')} ${content}`;
}

/** Decodes an ExportTraceServiceRequest. */
export function decodeTraces(bytes: Uint8Array): TestTrace[] {
  const { resource_spans: all } = decode('Traces', bytes) as { resource_spans: Record<string, never>[] };
  return all.map((each) => {
    const { resource, scope_spans: scopes } = each as unknown as {
      resource?: { attributes: unknown };
      scope_spans: { scope?: { name: string }; spans: Record<string, unknown>[] }[];
    };
    return {
      resource: attributes(resource?.attributes),
      scope: scopes[0]?.scope?.name,
      spans: scopes.flatMap(({ spans }) => spans.map(toSpan)),
    };
  });
}

function toSpan(span: Record<string, unknown>): TestSpan {
  const { events = [], status } = span as { events?: readonly { name: string }[]; status?: { code?: number } };
  return {
    traceId: hex(span['trace_id']),
    id: hex(span['span_id']),
    parent: hex(span['parent_span_id']),
    state: (span['trace_state'] as string | undefined) ?? '',
    name: span['name'] as string,
    kind: ['', '', 'server', 'client'][span['kind'] as number]!,
    startNanos: BigInt(span['start_time_unix_nano'] as string),
    endNanos: BigInt(span['end_time_unix_nano'] as string),
    tags: attributes(span['attributes']),
    events: events.map(({ name }) => name),
    isError: status?.code === 2,
    flags: (span['flags'] as number | undefined) ?? 0,
  };
}

export function hex(bytes: unknown): string {
  return bytes === undefined ? '' : Buffer.from(bytes as Uint8Array).toString('hex');
}
