// Decides when routes are published. After each publication the workers build the whole table again, which takes longer with more
// virtual hosts. Hosts that arrive one by one (VHDS) are published together, so that workers stay free for requests.

/**
 * A worker takes 1 µs for a virtual host that it has, and the primary 2 µs to pack it: this pause leaves them most of their time.
 */
const PAUSE_MS_PER_HOST = 0.01;
/** Requests wait for what is not published yet. */
const MAX_PAUSE_MS = 1000;

export interface PublicationContext {
  /** Publishes the current routes. Returns their number of virtual hosts. */
  publish(): number;
  /** Notifies the workers that it is known whether this host exists. */
  settle(host: string): void;
}

export class RoutePublication {
  readonly #context: PublicationContext;
  /** Set while the workers are busy with the last publication. */
  #pause: NodeJS.Timeout | undefined;
  #isDue = false;
  /** Hosts to settle after the routes that are due. */
  #settled: string[] = [];

  constructor(context: PublicationContext) {
    this.#context = context;
  }

  /** Publishes the routes at once. */
  publishNow(): void {
    this.#isDue = false;
    const hosts = this.#context.publish();
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.#pauseEnded(), Math.min(MAX_PAUSE_MS, hosts * PAUSE_MS_PER_HOST));
    this.#pause.unref();
    for (const host of this.#settled.splice(0)) this.#context.settle(host);
  }

  /** Publishes the routes at once, or at the end of the pause together with later changes. */
  schedule(): void {
    if (this.#pause === undefined) this.publishNow();
    else this.#isDue = true;
  }

  /** Publishes routes that are due. */
  flush(): void {
    if (this.#isDue) this.publishNow();
  }

  /** Called when it is known whether this host exists. Notifies the workers after the routes are published. */
  settled(host: string): void {
    if (this.#isDue) this.#settled.push(host);
    else this.#context.settle(host);
  }

  close(): void {
    clearTimeout(this.#pause);
    for (const host of this.#settled.splice(0)) this.#context.settle(host);
  }

  #pauseEnded(): void {
    this.#pause = undefined;
    this.flush();
  }
}
