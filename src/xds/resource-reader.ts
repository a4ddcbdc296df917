// The interface for reading resources: from encoded messages or files to checked messages. That needs the large schema, so a
// separate thread does it, which ends when it is idle.

import type { RefusedResource, Resource, ResourceType } from './resource.js';

/** A resource as a management server sends it. */
export interface EncodedResource {
  /** '' with state of the world, where only the resource itself has a name. */
  readonly name: string;
  readonly version: string;
  readonly aliases: readonly string[];
  /** The type URL of the google.protobuf.Any; for a wrapped resource, of the one in envoy.service.discovery.v3.Resource. */
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

export interface ReadResources {
  readonly resources: readonly Resource[];
  readonly refused: readonly RefusedResource[];
  /** TTLs in ms by name, of resources that have one. A name without a resource is a heartbeat, which restarts its TTL. */
  readonly ttlMs: ReadonlyMap<string, number>;
}

export interface ReadFile extends ReadResources {
  /** version_info of the file. */
  readonly version: string;
}

/**
 * 'unreadable': missing, or not permitted. 'garbled': not in the format that its extension indicates. 'refused': the message is
 * invalid.
 */
export type FileFault = 'unreadable' | 'garbled' | 'refused';

/** A file of resources that cannot be used as a whole. */
export class ResourceFileError extends Error {
  readonly fault: FileFault;

  constructor(message: string, fault: FileFault) {
    super(message);
    this.name = 'ResourceFileError';
    this.fault = fault;
  }
}

/** Reads the resources of one subscription, and remembers what it has read. */
export interface ResourceReader {
  /**
   * Reads resources; `version` of the response applies to resources without their own. Never rejects because of invalid
   * resources.
   */
  read(type: ResourceType, version: string, encoded: readonly EncodedResource[]): Promise<ReadResources>;
  /** Reads a DiscoveryResponse as YAML, JSON or protobuf, by the extension of the path. Rejects with a ResourceFileError. */
  readFile(type: ResourceType, path: string): Promise<ReadFile>;
  /** Reads a DiscoveryResponse in JSON, of the origin `name`. Rejects with a ResourceFileError. */
  readText(type: ResourceType, json: Uint8Array, name: string): Promise<ReadFile>;
  close(): void;
}

/** Encodes a configured message for requests. The reading thread does it, because it has the schema. */
export type EncodeMessage = (name: string, message: unknown) => Promise<Uint8Array>;
