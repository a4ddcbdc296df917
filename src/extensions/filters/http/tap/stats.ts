// Scope `http.<stat_prefix>.tap.`

import { defineLayout } from '../../../sdk.js';

export const TapStats = defineLayout({ rq_tapped: 'counter' });
