// Subscriptions to sources whose code is still to be loaded.

import type { Subscription, SubscriptionRequest } from './subscription.js';

/** Subscribes when there are sources, unless it has been closed by then; `failed` is told when there will be none. */
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
    .catch((error: unknown) => failed(`the subscription ${request.statPrefix} cannot begin`, error));
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
