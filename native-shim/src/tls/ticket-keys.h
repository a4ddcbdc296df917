// The keys of session tickets. The first encrypts new tickets; the others only decrypt.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace baton {

struct TicketKey {
  // As in Envoy's TlsSessionTicketKeys: name, HMAC-SHA256 key, AES-256-CBC key.
  static constexpr size_t kNameBytes = 16;
  static constexpr size_t kHmacBytes = 32;
  static constexpr size_t kAesBytes = 32;
  static constexpr size_t kBytes = kNameBytes + kHmacBytes + kAesBytes;

  uint8_t name[kNameBytes];
  uint8_t hmac[kHmacBytes];
  uint8_t aes[kAesBytes];
};

// A set of keys that several threads use while one replaces it.
class TicketKeys {
 public:
  using Keys = std::shared_ptr<const std::vector<TicketKey>>;

  // `bytes`: keys of TicketKey::kBytes each. Returns false for another length.
  bool set(const std::string& bytes);
  Keys get() const;

  // The keys that contexts without keys of their own share.
  static TicketKeys& shared();

  // Makes a context use this set, which must outlive it.
  void use(SSL_CTX* context);

 private:
  mutable std::mutex mutex_;
  Keys keys_;
};

}  // namespace baton
