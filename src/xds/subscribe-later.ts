// Subscriptions to sources whose code is still to be loaded.

import type { Subscription, SubscriptionRequest } from './subscription.js';

/**
 * Subscribes when there are sources, unless it has been closed by then. When there will be none, `failed` is told, and the
 * watcher goes on without, as after initial_fetch_timeout.
 */
export function subscribeLater(
  sources: Promise<{ subscribe(request: SubscriptionRequest): Subscription }>,
  request: SubscriptionRequest,
  failed: (what: string, error: unknown) => void,
): Subscription {
  let { names } = request;
  let inner: Subscription | undefined;
  let isClosed = false;
  sources
    .then((loaded) => {
      if (!isClosed) inner = loaded.subscribe({ ...request, names });
    })
    .catch((error: unknown) => {
      failed(`the subscription ${request.statPrefix} cannot begin`, error);
      if (!isClosed) request.watcher.fetchTimedOut();
    })
    .catch((error: unknown) => failed(`what waited for ${request.statPrefix} cannot go on`, error));
  return {
    setNames: (wanted) => {
      names = wanted;
      inner?.setNames(wanted);
    },
    close: () => {
      isClosed = true;
      inner?.close();
    },
  };
}
