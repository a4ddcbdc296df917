#include "tls/errors.h"

#include <openssl/err.h>

namespace baton {

std::string takeTlsErrors() {
  std::string text;
  for (;;) {
    const unsigned long code = ERR_get_error();
    if (code == 0) return text;
    const char* reason = ERR_reason_error_string(code);
    if (!text.empty()) text += '|';
    text += reason != nullptr ? reason : "error " + std::to_string(code);
  }
}

}  // namespace baton
