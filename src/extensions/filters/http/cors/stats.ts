// Scope `http.<stat_prefix>.cors.`

import { defineLayout } from '../../../sdk.js';

export const CorsStats = defineLayout({ origin_valid: 'counter', origin_invalid: 'counter' });
