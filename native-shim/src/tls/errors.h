// OpenSSL's error queue of the calling thread, as text.
#pragma once

#include <string>

namespace baton {

// Empties the queue. Returns the reasons, oldest first, each as in OpenSSL's own table ("certificate verify failed"), joined by '|'; '' if
// the queue is empty.
std::string takeTlsErrors();

}  // namespace baton
