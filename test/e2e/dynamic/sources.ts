// Sources of resources for a Baton under test: files that are moved into place, or a management server.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { RESOURCE_MESSAGES, type ResourceType } from '../../../src/xds/resource.js';
import type { Config } from '../harness/bootstrap.js';
import type { ControlPlane, XdsProtocol } from '../harness/control-plane.js';
import { ResourceFile } from './resource-file.js';

/** Types that the tests change. */
export type SourcedType = Extract<ResourceType, 'listener' | 'cluster' | 'endpoints' | 'route'>;

export interface ResourceSource {
  /** Static clusters and other parts of a bootstrap that takes listeners and clusters from here. */
  readonly clusters: readonly Config[];
  readonly extra: Config;
  /** Returns a ConfigSource for a resource that another one names. */
  configSource(type: 'endpoints' | 'route', name: string): Config;
  /** Replaces all resources of a type. */
  set(type: SourcedType, resources: readonly Config[]): void;
}

/** Resources in files: all listeners in one, all clusters in one, and one file for each of the others. */
export class FileSource implements ResourceSource {
  readonly clusters = [];
  readonly #directory: string;
  readonly #files = new Map<string, ResourceFile>();
  readonly #written = new Map<string, string>();

  constructor(directory: string) {
    this.#directory = join(directory, 'resources');
    mkdirSync(this.#directory);
  }

  get extra(): Config {
    return {
      node: { id: 'test-node', cluster: 'test-cluster' },
      dynamic_resources: { lds_config: this.#source('listener'), cds_config: this.#source('cluster') },
    };
  }

  configSource(type: 'endpoints' | 'route', name: string): Config {
    return this.#source(`${type}-${name}`);
  }

  set(type: SourcedType, resources: readonly Config[]): void {
    if (type === 'listener' || type === 'cluster') {
      this.#write(type, type, resources);
      return;
    }
    for (const resource of resources) {
      const name = String(resource['name'] ?? resource['cluster_name']);
      this.#write(`${type}-${name}`, type, [resource]);
    }
  }

  #source(name: string): Config {
    return this.#file(name).source;
  }

  #file(name: string): ResourceFile {
    let file = this.#files.get(name);
    if (file === undefined) this.#files.set(name, (file = new ResourceFile(this.#directory, name)));
    return file;
  }

  #write(name: string, type: SourcedType, resources: readonly Config[]): void {
    const text = JSON.stringify(resources);
    if (this.#written.get(name) === text) return;
    this.#written.set(name, text);
    this.#file(name).write(RESOURCE_MESSAGES[type], ...resources);
  }
}

/** Resources of a management server, over one aggregated stream. */
export class StreamSource implements ResourceSource {
  readonly clusters: readonly Config[];
  readonly extra: Config;
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane, protocol: XdsProtocol) {
    this.#plane = plane;
    this.clusters = [plane.cluster()];
    this.extra = plane.ads(protocol);
  }

  configSource(): Config {
    return { resource_api_version: 'V3', ads: {} };
  }

  set(type: SourcedType, resources: readonly Config[]): void {
    this.#plane.set(type, resources);
  }
}
