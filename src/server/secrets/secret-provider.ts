// One secret that a source delivers, shared by all contexts that name it. Another version of it, or other contents of its files,
// are used by all of these contexts or by none.

import { isDeepStrictEqual } from 'node:util';
import { BatonError, messageOf } from '../../common/errors/errors.js';
import { isDescriptorShortage } from '../../common/errors/shortages.js';
import { shownName } from '../../common/text/shown.js';
import { inTurns } from '../../common/time/next-turn.js';
import type { ConfigSource, Secret } from '../../config/generated/api.js';
import { getLogger } from '../../log/logger.js';
import { SecretStats } from '../../stats/layouts/tls.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import { checkSecret } from '../../tls/secrets/secret-check.js';
import { filesOf, withContents } from '../../tls/secrets/secret-contents.js';
import type { PreparedContext, SecretKind, SecretUser } from '../../tls/secrets/secret-discovery.js';
import { WatchedFiles } from '../../tls/secrets/watched-files.js';
import { accepted, type DynamicState, REQUESTED, refused, rejected } from '../../xds/dynamic-state.js';
import type { Resource, Update } from '../../xds/resource.js';
import type { StepwiseUpdate, Subscription, Watcher } from '../../xds/subscription.js';
import type { SecretsContext } from './secrets-context.js';

const logger = getLogger('config');

export interface ProviderOptions {
  readonly name: string;
  readonly kind: SecretKind;
  readonly source: ConfigSource;
}

/** What the source has delivered. */
interface Delivered {
  readonly resource: Resource<Secret>;
  readonly files: WatchedFiles;
}

/** Contexts are made in steps of about this time. */
const STEP_MS = 5;
/** Retry delay after files could not be read for lack of descriptors. */
const RETRY_MS = 2000;

export class SecretProvider implements Watcher<Secret> {
  readonly name: string;
  readonly createdAt = new Date();
  readonly #kind: SecretKind;
  readonly #context: SecretsContext;
  readonly #scope: ScopeRef;
  readonly #subscription: Subscription;
  readonly #users = new Set<SecretUser>();
  #state: DynamicState = REQUESTED;
  #current: Delivered | undefined;
  /** The version in use, with the contents of its files. */
  #secret: Secret | undefined;
  /** A later version that cannot be used. It is tried again when its files change: they may have been in the middle of a change. */
  #refused: Delivered | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isSettled = false;
  /** Contexts are being made. */
  #isBusy = false;
  #isClosed = false;

  /** Subscribes. */
  constructor(context: SecretsContext, { name, kind, source }: ProviderOptions) {
    this.name = name;
    this.#kind = kind;
    this.#context = context;
    const statPrefix = `sds.${name}.`;
    this.#scope = context.store.addScope(statPrefix, SecretStats);
    const names = new Set([name]);
    this.#subscription = context.sources.subscribe({ source, type: 'secret', names, statPrefix, watcher: this });
  }

  get state(): DynamicState {
    return this.#state;
  }

  get secret(): Secret | undefined {
    return this.#secret;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  get isUsed(): boolean {
    return this.#users.size > 0;
  }

  add(user: SecretUser): void {
    this.#users.add(user);
  }

  /** Returns whether it was a user. */
  remove(user: SecretUser): boolean {
    return this.#users.delete(user);
  }

  *update(update: Update<Secret>): StepwiseUpdate {
    const rejections = yield* this.#handle(update);
    this.#settle();
    return rejections;
  }

  fetchTimedOut(): void {
    logger.warning(`sds: the secret '${shownName(this.name)}' did not arrive in time`);
    this.#settle();
  }

  close(): void {
    this.#isClosed = true;
    this.#users.clear();
    clearTimeout(this.#retry);
    this.#current?.files.close();
    this.#refused?.files.close();
    this.#subscription.close();
    this.#context.store.removeScope(this.#scope);
  }

  *#handle({ isComplete, refused: unusable, removed, resources, version }: Update<Secret>): StepwiseUpdate {
    const isThis = ({ name }: { readonly name: string }) => name === this.name;
    const resource = resources.find(isThis);
    if (resource !== undefined) return yield* this.#take(resource);
    // A refusal without a name may concern this secret.
    const refusal = unusable.find((each) => isThis(each) || each.name === '');
    if (refusal !== undefined) {
      this.#state = refused(this.#state, refusal);
    } else if (isComplete && !removed.includes(this.name)) {
      const details = `the update has no secret '${this.name}'`;
      this.#state = refused(this.#state, { version, details, message: undefined });
      return [{ name: this.name, details }];
    }
    // As in Envoy, a removed secret stays in use.
    return [];
  }

  *#take(resource: Resource<Secret>): StepwiseUpdate {
    if (this.#current !== undefined && resource.message === this.#current.resource.message) {
      this.#state = accepted(resource, this.#state.lastUpdated);
      this.#current = { ...this.#current, resource };
      this.#setRefused(undefined);
      return [];
    }
    const { message } = resource;
    const delivered = {
      resource,
      files: new WatchedFiles(message[this.#kind] === undefined ? new Map() : filesOf(message, this.#kind)),
    };
    try {
      yield* this.#use(withContents(message, this.#kind));
      this.#accept(delivered);
      return [];
    } catch (error) {
      const rejection = { name: this.name, details: reasonOf(error) };
      this.#state = rejected(this.#state, resource, rejection);
      this.#setRefused(delivered);
      return [rejection];
    }
  }

  /** Called when a version is in use. */
  #accept(delivered: Delivered): void {
    const { resource } = delivered;
    this.#state = accepted(resource);
    this.#current?.files.close();
    this.#current = delivered;
    if (this.#refused === delivered) this.#refused = undefined;
    else this.#watch(delivered);
    this.#setRefused(undefined);
    logger.info(`sds: the secret '${shownName(this.name)}' has version '${shownName(resource.version)}'`);
  }

  #setRefused(delivered: Delivered | undefined): void {
    this.#refused?.files.close();
    this.#refused = delivered;
    if (delivered !== undefined) this.#watch(delivered);
  }

  #watch(delivered: Delivered): void {
    if (!this.#isClosed) {
      delivered.files.watch(() => this.#reload(delivered));
    }
  }

  /** Makes the contexts of all users, and then puts all of them into use. Throws, with nothing changed, when one cannot be made. */
  *#use(secret: Secret): Generator<void, void> {
    while (this.#isBusy) yield;
    this.#isBusy = true;
    const prepared = new Map<SecretUser, PreparedContext>();
    try {
      checkSecret(this.#context.shim, secret, this.#kind);
      // Hundreds of certificates take a tenth of a second, here and for each context.
      yield;
      let begunMs = performance.now();
      for (const user of this.#users) {
        prepared.set(user, user.prepare(secret));
        if (performance.now() - begunMs < STEP_MS) continue;
        yield;
        begunMs = performance.now();
      }
    } catch (error) {
      for (const each of prepared.values()) each.discard();
      throw error;
    } finally {
      this.#isBusy = false;
    }
    this.#secret = secret;
    for (const [user, context] of prepared) {
      if (this.#users.has(user)) context.use();
      else context.discard();
    }
  }

  /** Called when a file has changed. */
  #reload(delivered: Delivered): void {
    clearTimeout(this.#retry);
    inTurns(this.#reloadSteps(delivered)).catch((error: unknown) =>
      this.#context.failed(`the files of the secret '${shownName(this.name)}' are not used`, error),
    );
  }

  *#reloadSteps(delivered: Delivered): Generator<void, void> {
    while (this.#isBusy) yield;
    const isRefused = delivered.files === this.#refused?.files;
    if (this.#isClosed || (!isRefused && delivered.files !== this.#current?.files)) return;
    try {
      const secret = withContents(delivered.resource.message, this.#kind);
      if (!isRefused && isDeepStrictEqual(secret, this.#secret)) return;
      yield* this.#use(secret);
      if (isRefused) return this.#accept(delivered);
      this.#state = { ...this.#state, lastUpdated: new Date() };
      logger.info(`sds: the files of the secret '${shownName(this.name)}' were read again`);
    } catch (error) {
      this.#context.store.scope(this.#scope).increment(SecretStats.at.key_rotation_failed);
      const what = `sds: the changed files of the secret '${shownName(this.name)}' are not used`;
      logger.warning(`${what}, and the previous contents stay in use: ${reasonOf(error)}`);
      if (!isDescriptorShortage((error as Error).cause) || this.#isClosed) return;
      this.#retry = setTimeout(() => this.#reload(delivered), RETRY_MS).unref();
    }
  }

  #settle(): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    for (const user of this.#users) user.settled();
  }
}

/** With its place in the secret. */
function reasonOf(error: unknown): string {
  return error instanceof BatonError ? error.describe() : messageOf(error);
}
