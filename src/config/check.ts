// Checks a message in canonical form: implemented fields, constraints of the API, required oneofs, regular expressions,
// extensions.

import { describeDefect } from '../common/errors/defects.js';
import { BatonError } from '../common/errors/errors.js';
import { compileRegex, missingGroup } from '../common/text/regex.js';
import { alternativeCategories, UPSTREAM_FILTERS } from './catalog/alternative-categories.js';
import type { Extension, ExtensionCatalog, Report } from './catalog/extension.js';
import { ExtensionHints } from './catalog/extension-hints.js';
import type { FeatureUse } from './feature-use.js';
import { isLeftOut } from './fields/optional-filters.js';
import { parseRetryOn, retryOnWords } from './fields/retry-on.js';
import type {
  Any,
  ClusterSpecifierPlugin,
  FilterConfig,
  LoadBalancingPolicy,
  RegexMatchAndSubstitute,
  RegexMatcher,
  RetryPolicy,
  TypedExtensionConfig,
} from './generated/api.js';
import { rowOf } from './implemented/index.js';
import { alternatives, refusalOf } from './implemented/refusal.js';
import type { ImplementedTable } from './implemented/table.js';
import { DEFAULT_REGEX_LIMITS, type RegexLimits, sizeProblem } from './regex-limits.js';
import { unpack } from './schema/any.js';
import type { Message } from './schema/decode.js';
import { brokenLineRule } from './schema/line-rules.js';
import { FILTER_CONFIG, messageNameOf, typeUrlOf } from './schema/message-name.js';
import { brokenRule, brokenValueRule, elementRules } from './schema/rules.js';
import type { EnumType, FieldRules, FieldType, MessageType, Schema, ValueType } from './schema/schema.js';
import { newName } from './text/hints.js';
import { type Path, type PathPart, parsePath } from './text/path.js';
import type { Problems } from './text/problems.js';

export class Checker {
  readonly #schema: Schema;
  readonly #catalog: ExtensionCatalog;
  readonly #hints: ExtensionHints;
  readonly #table: ImplementedTable;
  readonly #problems: Problems;
  readonly #features: FeatureUse;
  readonly #regexLimits: RegexLimits;
  readonly #path: PathPart[] = [];
  /** Extension categories of the enclosing fields. A TypedExtensionConfig has that of its holder. */
  readonly #categories: (string | undefined)[] = [];
  /** The messages around the current place, the outermost first. */
  readonly #types: string[] = [];

  constructor(
    schema: Schema,
    catalog: ExtensionCatalog,
    table: ImplementedTable,
    problems: Problems,
    features: FeatureUse,
    regexLimits: RegexLimits = DEFAULT_REGEX_LIMITS,
  ) {
    this.#regexLimits = regexLimits;
    this.#features = features;
    this.#schema = schema;
    this.#catalog = catalog;
    this.#hints = new ExtensionHints(schema, catalog);
    this.#table = table;
    this.#problems = problems;
  }

  /** Checks `message` as that type. An extension that is given by name only gets its default typed_config. */
  check(name: string, message: Message): void {
    this.#message(this.#schema.message(name)!, message);
  }

  #message(type: MessageType, message: Message): void {
    if (type.name === HTTP_FILTER && this.#leavesOut(message)) return;
    if (type.name === SPECIFIER_PLUGIN && this.#leavesOutPlugin(message)) return;
    if (type.isUnfinished) this.#features.noteUnfinished(this.#path, type.name, type.name);
    this.#types.push(type.name);
    for (const field of type.fields.values()) {
      const value = message[field.name];
      if (value === undefined && !field.rules && field.value.kind !== 'enum') continue;
      this.#path.push(field.name);
      const holdsFilters = FILTER_HOLDERS.get(type.name) === field.name;
      if (holdsFilters) this.#categories.push(HTTP_FILTERS);
      if (!this.#problems.has(this.#path)) this.#field(type, field, value, message);
      if (holdsFilters) this.#categories.pop();
      this.#path.pop();
    }
    for (const oneof of type.oneofs) if (oneof.isRequired) this.#requiredOneof(oneof.fields, message);
    const isNamed = type.fields.has('typed_config') && type.fields.has('name') && type.name !== OVERLOAD_ACTION;
    if (isNamed && message['typed_config'] === undefined) this.#namedOnly(type, message);
    if (type.name === REGEX_MATCHER) this.#regex(message);
    if (type.name === REGEX_SUBSTITUTION) this.#substitution(message as RegexMatchAndSubstitute);
    if (type.name === RETRY_POLICY || type.name === CALL_RETRY_POLICY) this.#retryOn(message as RetryPolicy);
    this.#types.pop();
  }

  #requiredOneof(members: readonly string[], message: Message): void {
    const isSet = members.some(
      (member) => message[member] !== undefined || this.#problems.has([...this.#path, member]),
    );
    if (!isSet) this.#problems.error(this.#path, `one of ${members.join(', ')} must be set`);
  }

  /** Warns of an optional HTTP filter that this build does not have. Returns whether it is one. */
  #leavesOut(filter: Message): boolean {
    const category = HTTP_FILTERS;
    const name = String(filter['name'] ?? '');
    const config = filter['typed_config'] as Any | undefined;
    if (config === undefined && this.#catalog.byName(category, name) !== undefined) return false;
    if (!isLeftOut(filter, ({ '@type': url }) => this.#catalog.byTypeUrl(url, category)?.category === category))
      return false;
    const why = config
      ? this.#hints.refusalOf(undefined, name, config['@type'], category)!
      : this.#hints.unknownName(name, category);
    this.#features.noteLeftOut(this.#path, `${why}; it is optional and left out: requests pass without it`);
    return true;
  }

  /** Warns of an optional cluster specifier plugin that this build does not have. Returns whether it is one. */
  #leavesOutPlugin({ extension, is_optional: isOptional }: ClusterSpecifierPlugin): boolean {
    const { name = '', typed_config: config } = extension ?? {};
    if (!isOptional || config === undefined) return false;
    if (this.#catalog.byTypeUrl(config['@type'])?.category === SPECIFIERS) return false;
    const why = this.#hints.refusalOf(undefined, name, config['@type'], SPECIFIERS)!;
    this.#features.noteLeftOut(this.#path, `${why}; it is optional and left out: its routes take no request`);
    return true;
  }

  #regex(message: Message): void {
    try {
      compileRegex(String(message['regex'] ?? ''));
    } catch (error) {
      if (!(error instanceof BatonError)) throw error;
      this.#problems.error([...this.#path, 'regex'], error.message);
      return;
    }
    const problem = sizeProblem(message as RegexMatcher, this.#regexLimits);
    if (problem?.isError === true) this.#problems.error([...this.#path, 'regex'], problem.message);
    else if (problem !== undefined) this.#problems.warn([...this.#path, 'regex'], problem.message);
  }

  #substitution({ pattern, substitution = '' }: RegexMatchAndSubstitute): void {
    const missing = missingGroup(pattern?.regex ?? '', substitution);
    if (missing === undefined) return;
    const why = `it names ${missing}, a group that the expression does not have: as in Envoy, nothing is replaced`;
    this.#problems.warn([...this.#path, 'substitution'], why);
  }

  #retryOn({ retry_on = '' }: RetryPolicy): void {
    const { unknown } = parseRetryOn(retry_on);
    if (unknown.length === 0) return;
    const why = `'${unknown.join("', '")}' is unknown and has no effect: the conditions are ${retryOnWords().join(', ')}`;
    this.#problems.warn([...this.#path, 'retry_on'], why);
  }

  #field(type: MessageType, field: FieldType, value: unknown, owner: Message): void {
    // An unimplemented field is refused as such, unless the API disallows it.
    if (value !== undefined && !field.isDisallowed && !this.#isImplemented(type, field, value)) return;
    if (value !== undefined && !this.#mayUse(type, field)) return;
    if (value !== undefined && field.isDisallowed && !this.#isImplemented(type, field, value)) return;
    const enumType = field.value.kind === 'enum' ? this.#schema.enum(field.value.name) : undefined;
    if (value === undefined && enumType && !this.#mayLeaveOut(field, enumType)) return;
    const rule = brokenRule(field, value, enumType) ?? brokenLineRule(type.name, field.name, value);
    if (rule !== undefined) {
      this.#problems.error(this.#path, rule);
      return;
    }
    if (value === undefined || this.#isData(type, field)) return;
    if (field.value.kind === 'message' && field.value.name === LB_POLICY)
      this.#firstPolicy(value as LoadBalancingPolicy);
    else if (field.shape === 'single') this.#value(field, value, undefined, enumType, owner);
    else this.#elements(field, value as unknown[] | Message, enumType, owner);
  }

  #elements(field: FieldType, values: unknown[] | Message, enumType: EnumType | undefined, owner: Message): void {
    const isList = field.shape === 'list';
    const rules = elementRules(field, isList ? 'items' : 'values');
    const keyRules = elementRules(field, 'keys');
    for (const [key, value] of Object.entries(values)) {
      if (value === null && field.value.kind !== 'special') continue;
      this.#path.push(isList ? Number(key) : key);
      const rule = keyRules && !isList ? brokenValueRule(keyRules, key) : undefined;
      if (rule !== undefined) this.#problems.error(this.#path, rule, 'key');
      if (!this.#problems.has(this.#path)) this.#value(field, value, rules, enumType, isList ? owner : { name: key });
      this.#path.pop();
    }
  }

  #value(
    field: FieldType,
    value: unknown,
    rules: FieldRules | undefined,
    enumType: EnumType | undefined,
    owner: Message,
  ): void {
    const rule = rules && brokenValueRule(rules, value, enumType);
    if (rule !== undefined) this.#problems.error(this.#path, rule);
    if (enumType?.deprecated.has(value as string)) this.#mayUseValue(enumType, value as string, `'${value}'`);
    const type: ValueType = field.value;
    if (type.kind === 'message') {
      const messageType = this.#schema.message(type.name)!;
      this.#categories.push(this.#categoryOf(field));
      this.#message(messageType, value as Message);
      this.#categories.pop();
    } else if (type.kind === 'special' && type.special === 'any') {
      const wrapper = field.name === PER_FILTER ? unpack(value as Any, FILTER_CONFIG) : undefined;
      if (wrapper === undefined) this.#extension(value as Message, owner, this.#categoryOf(field));
      else this.#filterConfig(wrapper, owner, field.category);
    }
  }

  /** Returns the category of the extension in a field. The field of an upstream HTTP filter names the one of other HTTP filters. */
  #categoryOf({ category }: FieldType): string | undefined {
    const around = this.#categories.at(-1);
    return around === UPSTREAM_FILTERS ? around : (category ?? around);
  }

  /** Checks the first policy that Baton implements, which is used. The others are for other proxies and may be anything. */
  #firstPolicy({ policies = [] }: LoadBalancingPolicy): void {
    const at = [...this.#path, 'policies'];
    const index = policies.findIndex((policy) => this.#isBalancer(policy?.typed_extension_config));
    if (index >= 0) {
      this.#path.push('policies', index);
      this.#message(this.#schema.message(`${LB_POLICY}.Policy`)!, policies[index] as Message);
      this.#path.length -= 2;
      return;
    }
    if (
      policies.some((policy, place) => !policy || this.#problems.isDamaged([...at, place], this.#problems.errorCount))
    )
      return;
    const named = policies.map((policy) => `'${policy.typed_extension_config?.name ?? ''}'`).join(', ');
    const what = named === '' ? 'it has no policies' : `none of the policies ${named} is implemented in Baton`;
    const known = this.#catalog.list().filter(({ category }) => category === BALANCERS);
    this.#problems.error(this.#path, `${what}: use ${alternatives(known.map(({ name }) => name))}`);
  }

  #isBalancer({ name = '', typed_config: config }: TypedExtensionConfig = {}): boolean {
    const found = config ? this.#catalog.byTypeUrl(config['@type'], BALANCERS) : this.#catalog.byName(BALANCERS, name);
    return found?.category === BALANCERS;
  }

  /** Checks a per-route filter configuration in the wrapper that can also enable or disable the filter. */
  #filterConfig(wrapper: FilterConfig, owner: Message, category: string | undefined): void {
    const path = [...this.#path, 'config'];
    if (wrapper.config === undefined) {
      if (wrapper.disabled || this.#problems.has(path)) return;
      const remedy = "'config: {}' switches the filter on, 'disabled: true' switches it off";
      this.#problems.error(this.#path, `config is missing: ${remedy}`);
      return;
    }
    const config = wrapper.config as Message;
    if (config['@type'] === undefined) return;
    const url = String(config['@type']);
    const name = String(owner['name'] ?? '');
    if (wrapper.is_optional && this.#catalog.byTypeUrl(url) === undefined) {
      const refusal = this.#hints.refusalOf(undefined, name, url, category);
      this.#problems.warn([...path, '@type'], `${refusal}; it is optional and ignored`);
      (wrapper as Message)['config'] = {};
      return;
    }
    this.#path.push('config');
    this.#extension(config, owner, category);
    this.#path.pop();
  }

  #mayUse(type: MessageType, field: FieldType): boolean {
    if (!field.isDeprecated && !field.isUnfinished) return true;
    const title = `field '${field.name}' of ${type.name}`;
    const name = `${type.name}.${field.name}`;
    if (field.isUnfinished) this.#features.noteUnfinished(this.#path, name, title);
    if (!field.isDeprecated) return true;
    return this.#features.allows({
      path: this.#path,
      aspect: 'key',
      name,
      title,
      isDisallowed: field.isDisallowed,
    });
  }

  /** Checks that a field may be omitted: its default may be deprecated. */
  #mayLeaveOut(field: FieldType, enumType: EnumType): boolean {
    const value = enumType.names.get(0);
    if (field.shape !== 'single' || field.hasPresence || !enumType.deprecated.has(value!)) return true;
    return this.#mayUseValue(enumType, value!, `'${value}', the default of ${field.name},`);
  }

  #mayUseValue(enumType: EnumType, value: string, title: string): boolean {
    return this.#features.allows({
      path: this.#path,
      aspect: 'value',
      name: enumType.name.replace(/[^.]*$/, value),
      title,
      isDisallowed: enumType.disallowed.has(value),
    });
  }

  /** The field's message is data, which nothing but its reader checks. */
  #isData(type: MessageType, field: FieldType): boolean {
    const row = rowOf(this.#table, type.name, field.name);
    return typeof row === 'object' && 'data' in row;
  }

  #isImplemented(type: MessageType, field: FieldType, value: unknown): boolean {
    const row = rowOf(this.#table, type.name, field.name);
    const refusal = refusalOf(row, value, this.#catalog, this.#types.at(-2));
    if (refusal === undefined) return true;
    if (refusal.what === 'field') {
      const text = `field '${field.name}' of ${type.name} is not implemented in Baton`;
      this.#problems.error(this.#path, refusal.reason === '' ? text : `${text}: ${refusal.reason}`, 'key');
    } else {
      const text = `'${refusal.value}' of ${type.name}.${field.name} is not implemented in Baton`;
      this.#problems.error(this.#path, `${text}: use ${alternatives(refusal.instead)}`);
    }
    return false;
  }

  /** A known name without a typed_config stands for the extension's defaults, as in older files. */
  #namedOnly(type: MessageType, message: Message): void {
    const field = type.fields.get('typed_config')!;
    const oneof = type.oneofs.find((candidate) => candidate.name === field.oneof);
    const path = [...this.#path, 'typed_config'];
    if (this.#problems.has(path) || this.#problems.has([...this.#path, 'name'])) return;
    if (oneof?.fields.some((member) => message[member] !== undefined)) return;
    const name = String(message['name'] ?? '');
    const expected = this.#categoryOf(field);
    const category = alternativeCategories(expected).find((each) => this.#catalog.byName(each, name)) ?? expected;
    const found = category === undefined ? undefined : this.#catalog.byName(category, name);
    // An old config field has already been reported, with its replacement.
    const isReported = this.#problems.has([...this.#path, 'config']);
    if (!found) {
      if (!isReported || newName(name) !== undefined) {
        this.#problems.error(this.#path, () => this.#hints.unknownName(name, category));
      }
      return;
    }
    const [url] = found.typeUrls;
    // Some have no message, only a name.
    if (isReported || url === undefined) return;
    message['typed_config'] = { '@type': typeUrlOf(url) };
    this.#path.push('typed_config');
    this.#extension(message['typed_config'] as Message, message, category);
    this.#path.pop();
  }

  #extension(config: Message, owner: Message, expected: string | undefined): void {
    const url = String(config['@type'] ?? '');
    const category =
      alternativeCategories(expected).find((each) => this.#catalog.byTypeUrl(url, each)?.category === each) ?? expected;
    const found = this.#catalog.byTypeUrl(url, category);
    const name = String(owner['name'] ?? '');
    if (found === undefined || this.#hints.refusalOf(found, name, url, category) !== undefined) {
      const refusal = () => this.#hints.refusalOf(found, name, url, category) ?? '';
      this.#problems.error([...this.#path, '@type'], refusal);
      return;
    }
    const type = this.#schema.message(messageNameOf(url));
    this.#categories.push(undefined);
    if (type) this.#message(type, config);
    this.#categories.pop();
    validateExtension(found, config as Any, this.#problems, {
      path: this.#path,
      isOfRoute: this.#path.includes(PER_FILTER),
    });
  }
}

/** Where the message stands that an extension validates. */
interface ValidationTarget {
  readonly path: Path;
  /** Maps a path within the message to a place, if that is not below `path`. */
  readonly placeOf?: (inner: Path) => Path;
  /** The message is a per-route configuration. */
  readonly isOfRoute?: boolean;
}

/** Lets an extension validate a message. The message may have mistakes; reports about its damaged parts are ignored. */
export function validateExtension(
  extension: Extension,
  config: Any,
  problems: Problems,
  target: ValidationTarget,
): void {
  if (extension.validate === undefined) return;
  const { isOfRoute = false, path, placeOf } = target;
  const check = (report: Report) => {
    try {
      extension.validate!(config, report, isOfRoute);
    } catch (error) {
      if (problems.isDamaged(path, problems.errorCount)) return;
      report('', describeDefect('validate', extension.name, error));
    }
  };
  runCheck(problems, path, check, placeOf);
}

/**
 * Runs a check from another room on the message at `path`. The check relies on messages that obey the schema, so its reports
 * and exceptions about damaged parts are ignored.
 */
export function runCheck(
  problems: Problems,
  path: Path,
  check: (report: Report) => void,
  placeOf = (inner: Path): Path => [...path, ...inner],
): void {
  const known = problems.errorCount;
  problems.checking(path, () =>
    check((inner, message, ...others) => {
      const [place, ...from] = [inner, ...others].map((each) => placeOf(parsePath(each)));
      if ([place!, ...from].some((each) => problems.isDamaged(each, known))) return;
      problems.error(place!, message);
    }),
  );
}

const LB_POLICY = 'envoy.config.cluster.v3.LoadBalancingPolicy';
/** The category of load-balancing policies. */
const BALANCERS = 'envoy.load_balancing_policies';
/** Its name is that of an action, most of which have no configuration. */
const OVERLOAD_ACTION = 'envoy.config.overload.v3.OverloadAction';
const HTTP_FILTER = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter';
const HTTP_FILTERS = 'envoy.filters.http';
const SPECIFIER_PLUGIN = 'envoy.config.route.v3.ClusterSpecifierPlugin';
const SPECIFIERS = 'envoy.router.cluster_specifier_plugin';
/** Messages with a field that holds HTTP filters, which the API does not declare. */
const FILTER_HOLDERS: ReadonlyMap<string, string> = new Map([
  ['envoy.extensions.common.matching.v3.ExtensionWithMatcher', 'extension_config'],
  ['envoy.extensions.filters.http.composite.v3.FilterChainConfiguration', 'typed_config'],
]);
const PER_FILTER = 'typed_per_filter_config';
const REGEX_MATCHER = 'envoy.type.matcher.v3.RegexMatcher';
const REGEX_SUBSTITUTION = 'envoy.type.matcher.v3.RegexMatchAndSubstitute';
const RETRY_POLICY = 'envoy.config.route.v3.RetryPolicy';
/** Of calls that extensions make. */
const CALL_RETRY_POLICY = 'envoy.config.core.v3.RetryPolicy';
