// Reading of resources: from what travels, or lies in files, to what is checked. The schema that it takes is large, so it is
// done in a thread that ends when nothing has come for a while.

import type { RefusedResource, Resource, ResourceType } from './resource.js';

/** A resource as a management server sends it. */
export interface EncodedResource {
  /** '' with state of the world, where only the resource itself has its name. */
  readonly name: string;
  readonly version: string;
  readonly aliases: readonly string[];
  /** Of the google.protobuf.Any; may be that of envoy.service.discovery.v3.Resource, which holds the resource. */
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

export interface ReadResources {
  readonly resources: readonly Resource[];
  readonly refused: readonly RefusedResource[];
  /** Milliseconds by name, of resources that have a time to live; those without a resource only begin theirs anew. */
  readonly ttlMs: ReadonlyMap<string, number>;
}

export interface ReadFile extends ReadResources {
  /** version_info of the file. */
  readonly version: string;
}

/** It is not there, or may not be read; it holds no message in the form that its name says; or what the message says is wrong. */
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

/** Each subscription has a reader of its own: it knows what it has read before. */
export interface ResourceReader {
  /** `version` is that of the response: of resources that have none. Never rejects for what is wrong with resources. */
  read(type: ResourceType, version: string, encoded: readonly EncodedResource[]): Promise<ReadResources>;
  /** A DiscoveryResponse as YAML, JSON or protobuf, by the extension of the path. Rejects with a ResourceFileError. */
  readFile(type: ResourceType, path: string): Promise<ReadFile>;
  close(): void;
}

/** Bytes of messages that are configured, for requests: made where the schema is. */
export type EncodeMessage = (name: string, message: unknown) => Promise<Uint8Array>;
