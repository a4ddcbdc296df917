// The part of the extension API for calling gRPC services. It loads the gRPC library: import it in the file that makes the call,
// not in the index.ts that describes the extension.

export { encodeJson, loadMessages } from '../config/schema/messages.js';
export type { ClusterHosts } from '../grpc/cluster-hosts.js';
export { GrpcChannel } from '../grpc/grpc-channel.js';
