// Numbers of the proxy-wasm ABI (versions 0.1.0, 0.2.0 and 0.2.1), as modules and the host exchange them.

/** What host functions return. */
export const enum Result {
  Ok = 0,
  NotFound = 1,
  BadArgument = 2,
  SerializationFailure = 3,
  ParseFailure = 4,
  InvalidMemoryAccess = 6,
  Empty = 7,
  CasMismatch = 8,
  InternalFailure = 10,
  BrokenConnection = 11,
  Unimplemented = 12,
}

/** What callbacks of a module return for heads. */
export const enum Action {
  Continue = 0,
  StopIteration = 1,
  StopAllIterationAndBuffer = 3,
  StopAllIterationAndWatermark = 4,
}

/** What callbacks of a module return for bodies. */
export const enum DataAction {
  Continue = 0,
  StopIterationAndBuffer = 1,
  StopIterationAndWatermark = 2,
  StopIterationNoBuffer = 3,
}

export const enum MapType {
  RequestHeaders = 0,
  RequestTrailers = 1,
  ResponseHeaders = 2,
  ResponseTrailers = 3,
  GrpcReceiveInitialMetadata = 4,
  GrpcReceiveTrailingMetadata = 5,
  HttpCallResponseHeaders = 6,
  HttpCallResponseTrailers = 7,
}

export const enum BufferType {
  HttpRequestBody = 0,
  HttpResponseBody = 1,
  NetworkDownstreamData = 2,
  NetworkUpstreamData = 3,
  HttpCallResponseBody = 4,
  GrpcReceiveBuffer = 5,
  VmConfiguration = 6,
  PluginConfiguration = 7,
  CallData = 8,
}

export const enum StreamType {
  Request = 0,
  Response = 1,
  Downstream = 2,
  Upstream = 3,
}

export const enum MetricType {
  Counter = 0,
  Gauge = 1,
  Histogram = 2,
}

/** Errors of WASI functions. */
export const enum Errno {
  Success = 0,
  BadFile = 8,
  Fault = 21,
  NotImplemented = 52,
  NotSupported = 58,
}

export type AbiVersion = '0.1.0' | '0.2.0' | '0.2.1';

const VERSIONS: readonly AbiVersion[] = ['0.1.0', '0.2.0', '0.2.1'];

/** Returns the version that an export declares; undefined: it declares none. */
export function abiVersionOf(exportName: string): AbiVersion | undefined {
  return VERSIONS.find((version) => exportName === `proxy_abi_version_${version.replaceAll('.', '_')}`);
}

/** Types of values: 'i' is an i32, 'l' an i64. Before '>' are the parameters, after it the result. */
export type Signature = string;

/** Functions of modules that the host calls, by the version's differences. */
export const MODULE_FUNCTIONS: Readonly<Record<string, Signature>> = {
  malloc: 'i>i',
  proxy_on_memory_allocate: 'i>i',
  _initialize: '>',
  _start: '>',
  main: 'ii>i',
  proxy_validate_configuration: 'ii>i',
  proxy_on_vm_start: 'ii>i',
  proxy_on_configure: 'ii>i',
  proxy_on_tick: 'i>',
  proxy_on_context_create: 'ii>',
  proxy_on_request_headers: 'iii>i',
  proxy_on_request_body: 'iii>i',
  proxy_on_request_trailers: 'ii>i',
  proxy_on_request_metadata: 'ii>i',
  proxy_on_response_headers: 'iii>i',
  proxy_on_response_body: 'iii>i',
  proxy_on_response_trailers: 'ii>i',
  proxy_on_response_metadata: 'ii>i',
  proxy_on_new_connection: 'i>i',
  proxy_on_downstream_data: 'iii>i',
  proxy_on_upstream_data: 'iii>i',
  proxy_on_downstream_connection_close: 'ii>',
  proxy_on_upstream_connection_close: 'ii>',
  proxy_on_http_call_response: 'iiiii>',
  proxy_on_grpc_receive: 'iii>',
  proxy_on_grpc_close: 'iii>',
  proxy_on_grpc_receive_initial_metadata: 'iii>',
  proxy_on_grpc_receive_trailing_metadata: 'iii>',
  proxy_on_queue_ready: 'ii>',
  proxy_on_done: 'i>i',
  proxy_on_log: 'i>',
  proxy_on_delete: 'i>',
  proxy_on_foreign_function: 'iii>',
};

/** Returns the signature that the host expects of an exported function; undefined: the host does not call it. */
export function signatureOf(name: string, abi: AbiVersion): Signature | undefined {
  if (abi === '0.1.0' && (name === 'proxy_on_request_headers' || name === 'proxy_on_response_headers')) return 'ii>i';
  return Object.hasOwn(MODULE_FUNCTIONS, name) ? MODULE_FUNCTIONS[name] : undefined;
}

/** Returns a signature as Envoy prints it: `i32 i64 -> void`. */
export function signatureText(signature: Signature): string {
  const [parameters = '', results = ''] = signature.split('>');
  const text = (types: string) => (types === '' ? 'void' : [...types].map((type) => TYPE_NAMES[type] ?? '?').join(' '));
  return `${text(parameters)} -> ${text(results)}`;
}

const TYPE_NAMES: Readonly<Record<string, string>> = { i: 'i32', l: 'i64', f: 'f32', d: 'f64' };
