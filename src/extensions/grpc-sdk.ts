// The part of the extension API for calling gRPC services. Most extensions do not need it, and its messages load protobufjs: import
// it in the file that makes the call, not in the index.ts that describes the extension.

export { encodeJson, loadMessages } from '../config/schema/messages.js';
export { GrpcCall, type GrpcCallEvents } from '../grpc/grpc-call.js';
export { GrpcChannel, type UnaryEvents } from '../grpc/grpc-channel.js';
export type { GrpcStream } from '../grpc/retried-grpc-call.js';
export { GrpcCode, type GrpcStatus } from '../grpc/status.js';
