// A filter of a list of upstream HTTP filters.

import type { HttpFilterFactory } from '../../../../../http/filters/filter.js';
import type { HttpFilterExtension } from '../../../../factories.js';

export interface PlacedFilter {
  /** By which routes configure it. */
  readonly name: string;
  readonly extension: HttpFilterExtension;
  readonly factory: HttpFilterFactory;
  /** It runs only on routes that configure or enable it. */
  readonly isDisabled: boolean;
}
