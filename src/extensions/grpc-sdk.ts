// What extensions that call gRPC services import beside sdk.ts. Import it where such a call is made, not where an extension is
// described: it loads the gRPC library.

export { encodeJson, loadMessages } from '../config/schema/messages.js';
export type { ClusterHosts } from '../grpc/cluster-hosts.js';
export { GrpcChannel } from '../grpc/grpc-channel.js';
