// Tags of the stats of a store by section: the tags of a scope's prefix are extracted once for all its stats.

import type { Section, StatTable } from '../read/section.js';
import type { Tag, TaggedName } from '../tags.js';
import type { CodeTail, TagExtractor } from './tag-extractor.js';

/** Represents any name of letters, digits and underscores that is not a code. */
const ANY = 'x';
const PLAIN = /^\w+$/;
/** Maximum number of prefix rests for which names are cached. */
const MAX_RESTS = 256;

/** Extracted names by table and index. */
type Names = WeakMap<StatTable, (string | undefined)[]>;

/** What the stats of a section, or of one of its tables, have in common. */
interface Head {
  /** What remains of the prefix after extraction. */
  readonly rest: string;
  readonly tags: readonly Tag[];
  /** Names of stats by table and index, shared by all sections with this rest. */
  readonly names: Names | undefined;
  /** `tags` preceded by the tag of a code, by that code. */
  readonly withCodes: Map<string, readonly Tag[]>;
}

/** A stat's own name: with a code at its end, 'plain', or 'whole' if it may itself contain tags. */
type Tail = CodeTail | 'plain' | 'whole';

/** A section's head, or those of its tables: 'each' where the stats of a table have too little in common. */
type Heads = Head | Map<StatTable, Head | 'each'>;

export class SectionTags {
  readonly #extractor: TagExtractor;
  readonly #heads = new WeakMap<Section, Heads>();
  readonly #tails = new WeakMap<StatTable, Tail[]>();
  readonly #names = new Map<string, Names>();
  #section: Section | undefined;
  #current: Heads | undefined;

  constructor(extractor: TagExtractor) {
    this.#extractor = extractor;
  }

  /** Returns the same as extraction from the full name. Stats of a section with the same tags share one list of them. */
  tagged(section: Section, table: StatTable, index: number): TaggedName {
    const heads = section === this.#section ? this.#current! : this.#enter(section);
    const own = table.names[index]!;
    const tail = this.#tailsOf(table)[index]!;
    let head: Head | 'each';
    if (!(heads instanceof Map)) head = tail === 'whole' ? 'each' : heads;
    else head = heads.get(table) ?? this.#compare(section, table, heads);
    if (head === 'each') return this.#extractor.extract(section.prefix + own);
    if (typeof tail === 'string') return { name: nameOf(head, table, index, own), tags: head.tags };
    return { name: nameOf(head, table, index, tail.rest), tags: withCode(head, tail.tag) };
  }

  #enter(section: Section): Heads {
    let heads = this.#heads.get(section);
    if (heads === undefined) this.#heads.set(section, (heads = this.#headOf(section.prefix) ?? new Map()));
    this.#section = section;
    return (this.#current = heads);
  }

  /** Returns the head of all stats under a prefix; undefined if their own names may contain tags. */
  #headOf(prefix: string): Head | undefined {
    const tokens = prefix.split('.');
    // A prefix that ends inside a token leaves its last token incomplete.
    if (!this.#extractor.isByPrefix(tokens[0]!) || tokens.at(-1) !== '') return undefined;
    if (tokens.some((token) => this.#extractor.tokensBeforeEnd.has(token))) return undefined;
    const { name, tags } = this.#extractor.extract(prefix + ANY);
    return this.#newHead(prefix, name.slice(0, -ANY.length), tags);
  }

  /** Extracts from the full names of a whole table and caches what they have in common. */
  #compare(section: Section, table: StatTable, heads: Map<StatTable, Head | 'each'>): Head | 'each' {
    const tails = this.#tailsOf(table);
    let head: Head | undefined;
    let isCommon = true;
    for (let index = 0; isCommon && index < table.length; index++) {
      const tail = tails[index]!;
      const { name, tags } = this.#extractor.extract(section.prefix + table.names[index]!);
      const [own, code] = typeof tail === 'string' ? [table.names[index]!, undefined] : [tail.rest, tail.tag];
      const common = code === undefined ? tags : tags.slice(1);
      head ??= this.#newHead(section.prefix, name.slice(0, name.length - own.length), common);
      isCommon = name === head.rest + own && areSame(code === undefined ? head.tags : withCode(head, code), tags);
    }
    const found = isCommon && head !== undefined ? head : 'each';
    heads.set(table, found);
    return found;
  }

  #newHead(prefix: string, rest: string, tags: readonly Tag[]): Head {
    // If nothing was extracted, rests are as numerous as prefixes and are not cached.
    return { rest, tags, names: rest === prefix ? undefined : this.#namesOf(rest), withCodes: new Map() };
  }

  #namesOf(rest: string): Names {
    let names = this.#names.get(rest);
    if (names === undefined) {
      if (this.#names.size === MAX_RESTS) this.#names.clear();
      this.#names.set(rest, (names = new WeakMap()));
    }
    return names;
  }

  #tailsOf(table: StatTable): Tail[] {
    let tails = this.#tails.get(table);
    if (tails === undefined) {
      tails = table.names.map((name) => (PLAIN.test(name) ? (this.#extractor.codeTail(name) ?? 'plain') : 'whole'));
      this.#tails.set(table, tails);
    }
    return tails;
  }
}

function areSame(some: readonly Tag[], others: readonly Tag[]): boolean {
  if (some.length !== others.length) return false;
  return some.every(({ name, value }, i) => name === others[i]!.name && value === others[i]!.value);
}

function nameOf(head: Head, table: StatTable, index: number, own: string): string {
  if (head.names === undefined) return head.rest + own;
  let names = head.names.get(table);
  if (names === undefined) head.names.set(table, (names = new Array<string | undefined>(table.length)));
  return (names[index] ??= head.rest + own);
}

function withCode(head: Head, tag: Tag): readonly Tag[] {
  const key = `${tag.name}=${tag.value}`;
  let tags = head.withCodes.get(key);
  if (tags === undefined) head.withCodes.set(key, (tags = [tag, ...head.tags]));
  return tags;
}
