// When the workers are told of routes. Each telling makes them put the whole table together again, which takes the longer the more
// virtual hosts there are: those that come one by one (VHDS) are told together, so that workers stay free for requests.

/** A worker takes a microsecond for a virtual host that it has, and the primary two to pack it: this leaves them most of their time. */
const REST_MS_PER_HOST = 0.01;
/** Requests wait for what is not told yet. */
const LONGEST_REST_MS = 1000;

export interface PublicationContext {
  /** Tells the workers of the routes as they are now. Returns how many virtual hosts these have. */
  publish(): number;
  /** Tells them that it is known whether this host exists. */
  settle(host: string): void;
}

export class RoutePublication {
  readonly #context: PublicationContext;
  /** The workers are busy with what they were told last. */
  #rest: NodeJS.Timeout | undefined;
  #isDue = false;
  /** What is to be told behind the routes that are due. */
  #settled: string[] = [];

  constructor(context: PublicationContext) {
    this.#context = context;
  }

  /** The routes are told at once. */
  now(): void {
    this.#isDue = false;
    const hosts = this.#context.publish();
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.#rested(), Math.min(LONGEST_REST_MS, hosts * REST_MS_PER_HOST));
    this.#rest.unref();
    for (const host of this.#settled.splice(0)) this.#context.settle(host);
  }

  /** At once, or together with others that come while the workers rest. */
  soon(): void {
    if (this.#rest === undefined) this.now();
    else this.#isDue = true;
  }

  /** What is due is told. */
  flush(): void {
    if (this.#isDue) this.now();
  }

  /** It is known of this host whether it exists: it is told behind the routes. */
  settled(host: string): void {
    if (this.#isDue) this.#settled.push(host);
    else this.#context.settle(host);
  }

  close(): void {
    clearTimeout(this.#rest);
    for (const host of this.#settled.splice(0)) this.#context.settle(host);
  }

  #rested(): void {
    this.#rest = undefined;
    this.flush();
  }
}
