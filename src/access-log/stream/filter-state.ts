// Filter state: named objects of a stream, which filters set and logs, headers and other filters read.

/** How long an object can be shared with connections to hosts. */
export type UpstreamSharing = 'NONE' | 'ONCE' | 'TRANSITIVE';

/** One object. Its content has one character per byte. */
export interface FilterStateObject {
  /** As %FILTER_STATE(KEY:PLAIN)% prints it. */
  readonly text: string;
  /** As %FILTER_STATE(KEY:TYPED)% prints it; absent: the text as a JSON string. */
  readonly json?: string;
  /** As %FILTER_STATE(KEY:FIELD:NAME)% prints them. */
  readonly fields?: { readonly [name: string]: string | number };
  /** As access log services get it; absent: the text as a google.protobuf.StringValue. */
  readonly message?: { readonly typeUrl: string; readonly encoded: Uint8Array };
  readonly isReadOnly: boolean;
  readonly sharing: UpstreamSharing;
}

export class FilterState {
  readonly #objects = new Map<string, FilterStateObject>();
  readonly #ofConnection: FilterState | undefined;

  /** @param ofConnection that of the connection, whose objects its streams have too */
  constructor(ofConnection?: FilterState) {
    this.#ofConnection = ofConnection;
  }

  /** Returns the object of this name; undefined: there is none. */
  get(key: string): FilterStateObject | undefined {
    return this.#objects.get(key) ?? this.#ofConnection?.get(key);
  }

  /** Returns the objects that a connection to a host takes over, as that connection has them; undefined: none. */
  shared(): (readonly [key: string, object: FilterStateObject])[] | undefined {
    const all = new Map(this.#ofConnection?.shared());
    for (const [key, object] of this.#objects) {
      if (object.sharing === 'NONE') all.delete(key);
      else all.set(key, object.sharing === 'ONCE' ? { ...object, sharing: 'NONE' } : object);
    }
    return all.size === 0 ? undefined : [...all];
  }

  /** Sets an object. Returns false, with nothing changed, if there is a read-only one, or as in Envoy one of the parent. */
  set(key: string, object: FilterStateObject): boolean {
    if (this.#objects.get(key)?.isReadOnly === true || this.#ofConnection?.get(key) !== undefined) return false;
    this.#objects.set(key, object);
    return true;
  }
}
