// The requirements of a request (JwtRequirement), compiled to a tree that is evaluated in order.

import type { JwtAuthentication, JwtRequirement } from '../../../../config/generated/api.js';
import { BatonError, type HeaderBlock, type HeaderKey, headerKey, settableKey, withinPlace } from '../../../sdk.js';
import type { KeySource } from './key-source.js';
import { type FoundToken, Locations } from './locations.js';
import { audienceSet, type Provider, type SetMetadata } from './provider.js';
import { Status, statusText } from './status.js';
import { parseToken, type Token } from './token.js';

/** One request that is verified. */
export interface Verification {
  readonly headers: HeaderBlock;
  readonly setMetadata: SetMetadata;
  readonly nowSeconds: number;
  /** Called for each token of a provider that a requirement names. */
  countLookup(isHit: boolean): void;
  /** The route shall be chosen again. */
  choosesRouteAgain: boolean;
}

/** Yields each source whose keys are needed and absent; resumed when its fetch has ended. */
export type Steps = Generator<KeySource, Status, void>;

export interface Requirement {
  verify(request: Verification): Steps;
}

/** The providers by name, in order. */
export type Providers = ReadonlyMap<string, Provider>;

/** Compiles a requirement. `where`: its path. Throws a BatonError for a provider that does not exist. */
export function compileRequirement(config: JwtRequirement, providers: Providers, where: string): Requirement {
  return compile(config, providers, where, undefined);
}

/** Throws a BatonError unless every provider of the requirement exists. */
export function checkRequirement(config: JwtRequirement, names: JwtAuthentication['providers'], where: string): void {
  const { extract_only_without_validation: extraction, requires_all, requires_any } = config;
  const provider_name = nameOf(config);
  requires_all?.requirements?.forEach((each, index) => {
    checkRequirement(each, names, `${where}.requires_all.requirements[${index}]`);
  });
  requires_any?.requirements?.forEach((each, index) => {
    checkRequirement(each, names, `${where}.requires_any.requirements[${index}]`);
  });
  const { verification_status_header: statusField } = extraction ?? {};
  if (statusField)
    withinPlace(`${where}.extract_only_without_validation.verification_status_header`, () => settableKey(statusField));
  if (provider_name === undefined || Object.hasOwn(names ?? {}, provider_name)) return;
  const at = config.provider_and_audiences === undefined ? where : `${where}.provider_and_audiences`;
  throw new BatonError('CONFIG_INVALID', `Required provider ['${provider_name}'] is not configured.`, {
    where: `${at}.provider_name`,
  });
}

/** Returns the provider that a requirement names, which is '' if it should name one; undefined: it needs none. */
function nameOf({ provider_and_audiences: one, provider_name: name }: JwtRequirement): string | undefined {
  return name ?? (one && (one.provider_name ?? ''));
}

/** `siblings`: names of the providers beside it in requires_any; undefined: it is in no group. */
function compile(
  config: JwtRequirement,
  providers: Providers,
  where: string,
  siblings: readonly string[] | undefined,
): Requirement {
  const { provider_and_audiences: one, requires_all: all, requires_any: any } = config;
  const { allow_missing, allow_missing_or_failed, extract_only_without_validation: extraction } = config;
  const inner = (list: readonly JwtRequirement[] | undefined, names: readonly string[]) =>
    (list ?? []).map((each, index) => compile(each, providers, `${where}[${index}]`, names));
  if (all !== undefined) return new All(inner(all.requirements, []));
  if (any !== undefined) {
    const list = any.requirements ?? [];
    const names = list.flatMap((each) => nameOf(each) ?? []);
    // As in Envoy, only one requirement that allows more applies, after the others.
    const open = list.find((each) => each.allow_missing_or_failed) ?? list.find((each) => each.allow_missing);
    const others = list.filter((each) => !each.allow_missing_or_failed && !each.allow_missing);
    return new Any(inner(open === undefined ? others : [...others, open], names));
  }
  const name = nameOf(config);
  if (name !== undefined) {
    const provider = providers.get(name);
    if (provider === undefined) throw new BatonError('CONFIG_INVALID', `there is no provider '${name}'`, { where });
    const audiences = one?.audiences === undefined ? undefined : audienceSet(one.audiences);
    return new OneProvider(provider, audiences, siblings === undefined);
  }
  const chosen =
    siblings === undefined || siblings.length === 0
      ? [...providers.values()]
      : siblings.map((each) => providers.get(each)!);
  if (allow_missing !== undefined) return new AnyProvider(chosen, false, undefined);
  if (allow_missing_or_failed !== undefined) return new AnyProvider(chosen, true, undefined);
  if (extraction !== undefined) return new AnyProvider(chosen, true, extraction.verification_status_header);
  return { verify: allowAll };
}

// biome-ignore lint/correctness/useYield: it waits for nothing.
function* allowAll(): Steps {
  return Status.Ok;
}

class OneProvider implements Requirement {
  readonly #provider: Provider;
  readonly #audiences: ReadonlySet<string> | undefined;
  readonly #isAlone: boolean;
  readonly #locations: Locations;

  constructor(provider: Provider, audiences: ReadonlySet<string> | undefined, isAlone: boolean) {
    this.#provider = provider;
    this.#audiences = audiences;
    this.#isAlone = isAlone;
    this.#locations = new Locations([provider.config]);
  }

  /** All tokens must be valid: the host might use another one than the one that was verified. */
  *verify(request: Verification): Steps {
    const provider = this.#provider;
    const tokens = this.#locations.find(request.headers);
    let status = tokens === undefined ? Status.VerificationFails : Status.Missing;
    for (const found of tokens?.reverse() ?? []) {
      const cached = provider.cache?.get(found.text);
      request.countLookup(cached !== undefined);
      status = yield* verifyToken(found, cached, () => provider, request, this.#audiences);
      if (status !== Status.Ok) break;
    }
    // As in Envoy, a missing token is reported only where it is all that is required.
    if (status !== Status.Ok && (status !== Status.Missing || this.#isAlone)) report(provider, status, request);
    return status;
  }
}

/** Tokens of several providers, which may be absent. */
class AnyProvider implements Requirement {
  readonly #providers: readonly Provider[];
  readonly #mayFail: boolean;
  /** Gets 'false' for a token that is not valid. */
  readonly #statusField: HeaderKey | undefined;
  readonly #locations: Locations;

  constructor(providers: readonly Provider[], mayFail: boolean, statusField: string | undefined) {
    this.#providers = providers;
    this.#mayFail = mayFail;
    this.#statusField = statusField ? headerKey(statusField) : undefined;
    this.#locations = new Locations(providers.map(({ config }) => config));
  }

  *verify(request: Verification): Steps {
    const tokens = this.#locations.find(request.headers);
    let failed: Status = tokens === undefined ? Status.VerificationFails : Status.Ok;
    for (const found of tokens?.reverse() ?? []) {
      let provider: Provider | undefined;
      const find = (token: Token) => {
        provider =
          this.#providers.find(({ issuer }) => issuer !== '' && issuer === token.issuer) ??
          this.#providers.find(({ issuer }) => issuer === '');
        return provider;
      };
      const status = yield* verifyToken(found, undefined, find, request, undefined);
      if (status === Status.Ok) continue;
      failed = status;
      if (provider !== undefined) report(provider, status, request);
      if (!this.#mayFail) break;
    }
    if (this.#statusField !== undefined && failed !== Status.Ok) request.headers.set(this.#statusField, 'false');
    return this.#mayFail ? Status.Ok : failed;
  }
}

class Any implements Requirement {
  readonly #children: readonly Requirement[];

  constructor(children: readonly Requirement[]) {
    this.#children = children;
  }

  /** Returns the last failure that says more than that there is no token for a provider. */
  *verify(request: Verification): Steps {
    let result = Status.Missing;
    for (const child of this.#children) {
      const status = yield* child.verify(request);
      if (status === Status.Ok) return status;
      const saysMore = status !== Status.Missing && status !== Status.UnknownIssuer;
      if (saysMore || result === Status.Missing) result = status;
    }
    return result;
  }
}

class All implements Requirement {
  readonly #children: readonly Requirement[];

  constructor(children: readonly Requirement[]) {
    this.#children = children;
  }

  *verify(request: Verification): Steps {
    for (const child of this.#children) {
      const status = yield* child.verify(request);
      if (status !== Status.Ok) return status;
    }
    return Status.Ok;
  }
}

function report({ config }: Provider, status: Status, { setMetadata }: Verification): void {
  const key = config.failed_status_in_metadata;
  if (key) setMetadata(key, { code: status, message: statusText(status) });
}

/**
 * Verifies a token. `cached`: the same token, whose signature has been verified before. `find` returns the provider of the token; undefined:
 * none has its issuer.
 */
function* verifyToken(
  found: FoundToken,
  cached: Token | undefined,
  find: (token: Token) => Provider | undefined,
  request: Verification,
  audiences: ReadonlySet<string> | undefined,
): Steps {
  const token = cached ?? parseToken(found.text);
  if (typeof token === 'number') return token;
  if (found.issuers?.has(token.issuer) === false) return Status.UnknownIssuer;
  const provider = find(token);
  if (provider === undefined) return Status.UnknownIssuer;
  const status = provider.checkClaims(token, request.nowSeconds, audiences);
  if (status !== Status.Ok) return status;
  if (cached === undefined) {
    const signed = yield* verifySignature(token, provider);
    if (signed !== Status.Ok) return signed;
    provider.cache?.add(found.text, token);
  }
  if (provider.apply(token, found, request.headers, request.setMetadata)) request.choosesRouteAgain = true;
  return Status.Ok;
}

function* verifySignature(token: Token, { keySource }: Provider): Steps {
  if (keySource.keys === undefined) yield keySource;
  return keySource.keys?.verify(token) ?? Status.FetchFailed;
}
