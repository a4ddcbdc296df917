// The compiled configuration of the jwt_authn filter, one per filter chain and worker.

import type { FilterStateRule, JwtAuthentication } from '../../../../config/generated/api.js';
import {
  type HeaderBlock,
  type HeaderKey,
  type Random,
  RequestMatch,
  type Runtime,
  type StreamInfo,
} from '../../../sdk.js';
import { type FetchContext, keySourceOf } from './key-source.js';
import { Provider } from './provider.js';
import { checkRequirement, compileRequirement, type Providers, type Requirement } from './requirement.js';

interface Rule {
  readonly match: RequestMatch;
  /** Undefined: nothing is required. */
  readonly requirement: Requirement | undefined;
}

export class JwtRules {
  readonly bypassesPreflight: boolean;
  readonly stripsFailures: boolean;
  /** Fields that only this filter may set. */
  readonly ownFields: readonly HeaderKey[];
  readonly #providers: Providers;
  readonly #rules: readonly Rule[];
  readonly #byName: ReadonlyMap<string, Requirement>;
  readonly #byState: { readonly key: string; readonly requirements: ReadonlyMap<string, Requirement> } | undefined;
  readonly #random: Random;

  /** The configuration has passed checkRules(). */
  constructor(config: JwtAuthentication, context: FetchContext, runtime: Runtime, random: Random) {
    const providers = Object.entries(config.providers ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
    this.#providers = new Map(providers.map(([name, each]) => [name, new Provider(each, keySourceOf(each, context))]));
    this.bypassesPreflight = config.bypass_cors_preflight ?? false;
    this.stripsFailures = config.strip_failure_response ?? false;
    this.ownFields = [...this.#providers.values()].flatMap(({ ownFields }) => ownFields);
    this.#byName = this.#compileAll(config.requirement_map);
    this.#rules = (config.rules ?? []).map(({ match, requirement_name: name, requires }) => ({
      match: new RequestMatch(match!, '', runtime),
      requirement: name === undefined ? requires && this.#compile(requires) : this.#byName.get(name),
    }));
    const states: FilterStateRule | undefined = config.filter_state_rules;
    this.#byState = states && { key: states.name!, requirements: this.#compileAll(states.requires) };
    this.#random = random;
  }

  /** Returns what a request needs; undefined: nothing. A text is the reason why it cannot be known. `name`: of the route. */
  requirementOf(headers: HeaderBlock, info: StreamInfo, name: string | undefined): Requirement | string | undefined {
    if (name !== undefined) {
      const names = [...this.#byName.keys()].sort().join(', ');
      return this.#byName.get(name) ?? `Wrong requirement_name: ${name}. It should be one of [${names}]`;
    }
    const random = this.#random.nextUint32();
    for (const { match, requirement } of this.#rules)
      if (match.matches(headers, random, info.downstreamSecurity)) return requirement;
    const state = this.#byState && info.filterState?.get(this.#byState.key);
    return state && this.#byState.requirements.get(state.text);
  }

  close(): void {
    for (const { keySource } of this.#providers.values()) keySource.close();
  }

  #compile(config: NonNullable<JwtAuthentication['requirement_map']>[string]): Requirement | undefined {
    return Object.keys(config).length === 0 ? undefined : compileRequirement(config, this.#providers, '');
  }

  #compileAll(configs: JwtAuthentication['requirement_map'] = {}): ReadonlyMap<string, Requirement> {
    const entries = Object.entries(configs).map(
      ([name, each]) => [name, compileRequirement(each, this.#providers, '')] as const,
    );
    return new Map(entries);
  }
}

/** Throws a BatonError for a rule that cannot be compiled. */
export function checkRules(
  { filter_state_rules, providers, requirement_map = {}, rules = [] }: JwtAuthentication,
  runtime: Runtime,
): void {
  for (const [name, requirement] of Object.entries(requirement_map))
    checkRequirement(requirement, providers, `requirement_map[${JSON.stringify(name)}]`);
  for (const [value, requirement] of Object.entries(filter_state_rules?.requires ?? {}))
    checkRequirement(requirement, providers, `filter_state_rules.requires[${JSON.stringify(value)}]`);
  for (const [index, { match, requires }] of rules.entries()) {
    if (requires !== undefined) checkRequirement(requires, providers, `rules[${index}].requires`);
    new RequestMatch(match!, `rules[${index}].match`, runtime);
  }
}
