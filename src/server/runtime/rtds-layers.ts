// Runtime layers from files and management servers (RTDS). Each layer is one resource, and empty until that arrives.

import { isFileSource } from '../../config/fields/file-of-source.js';
import { wrongRuntimeValues } from '../../config/fields/runtime-entries.js';
import type { RuntimeLayer, RuntimeRuntime as RuntimeResource } from '../../config/generated/api.js';
import type { LayeredRuntime } from '../../runtime/layered-runtime.js';
import type { Resource, Update } from '../../xds/resource.js';
import type { ConfigSources, Rejection, Subscription, Watcher } from '../../xds/subscription.js';
import type { InitManager, InitTarget } from '../init/init-manager.js';

export class RtdsLayers {
  readonly #subscriptions: Subscription[] = [];

  /** Subscribes to the RTDS layers among `layers`. `init` waits until each has arrived or its fetch has timed out. */
  start(layers: readonly RuntimeLayer[], runtime: LayeredRuntime, sources: ConfigSources, init: InitManager): void {
    for (const { name: layer = '', rtds_layer: rtds } of layers) {
      if (rtds === undefined) continue;
      const name = rtds.name ?? '';
      this.#subscriptions.push(
        sources.subscribe<RuntimeResource>({
          source: rtds.rtds_config!,
          type: 'runtime',
          names: new Set([name]),
          statPrefix: 'runtime.',
          watcher: new RtdsLayer(name, init.add(`RTDS ${name}`, isFileSource(rtds.rtds_config)), (values) =>
            runtime.setLayer(layer, values),
          ),
        }),
      );
    }
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.close();
  }
}

class RtdsLayer implements Watcher<RuntimeResource> {
  readonly #name: string;
  readonly #target: InitTarget;
  readonly #set: (values: NonNullable<RuntimeResource['layer']>) => void;
  #message: RuntimeResource | undefined;

  constructor(name: string, target: InitTarget, set: (values: NonNullable<RuntimeResource['layer']>) => void) {
    this.#name = name;
    this.#target = target;
    this.#set = set;
  }

  update(update: Update<RuntimeResource>): readonly Rejection[] {
    const rejections = this.#use(update);
    this.#target.ready();
    return rejections;
  }

  fetchTimedOut(): void {
    this.#target.ready();
  }

  #use({ resources, refused, removed, isComplete }: Update<RuntimeResource>): Rejection[] {
    const resource = resources.find(({ name }) => name === this.#name);
    if (resource !== undefined) return this.#put(resource);
    if (removed.includes(this.#name)) {
      this.#message = undefined;
      this.#set({});
    } else if (isComplete && !refused.some(({ name }) => name === this.#name || name === '')) {
      // A resource that is not mentioned is not removed: state-of-the-world RTDS has no removals.
      return [{ name: this.#name, details: `the update has no RTDS resource '${this.#name}'` }];
    }
    return [];
  }

  #put({ name, message }: Resource<RuntimeResource>): Rejection[] {
    if (message === this.#message) return [];
    const values = message.layer ?? {};
    const wrong = wrongRuntimeValues(values).map(({ key, what }) => `invalid runtime value for '${key}': ${what}`);
    if (wrong.length > 0) return [{ name, details: wrong.join('; ') }];
    this.#message = message;
    this.#set(values);
    return [];
  }
}
