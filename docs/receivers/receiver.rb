#!/usr/bin/env ruby
# Takes Earshot's webhooks. Ruby 2.7 or later, nothing else.
#
#     SECRET=hush ruby receiver.rb               the Connection has headers: {"x-secret": "hush"}
#     WEBHOOK_SECRET=whsec_... ruby receiver.rb  the Connection has signingSecrets: ["whsec_..."]
#
# What a receiver must do: check who sends, remember `name` and take each Scan once, answer at once, and do
# the work afterwards. Without either secret it takes what anybody sends: for trying out alone.
require 'json'
require 'openssl'
require 'socket'

PORT = Integer(ENV.fetch('PORT', '4000'))
SECRET = ENV.fetch('SECRET', '')
SIGNING = ENV.fetch('WEBHOOK_SECRET', '')
MAX_BYTES = 1024 * 1024

SEEN = {} # a database, in earnest: unique by `name`
LOCK = Mutex.new
WORK = Queue.new
REASONS = { 204 => 'No Content', 400 => 'Bad Request', 401 => 'Unauthorized', 413 => 'Too Large' }.freeze

# In the same time, whatever is given.
def same?(one, other)
  a, b = [one, other].map { |text| OpenSSL::Digest.digest('SHA256', text) }
  OpenSSL.fixed_length_secure_compare(a, b)
end

def genuine?(headers, body)
  return false if SECRET != '' && !same?(headers.fetch('x-secret', ''), SECRET)
  return true if SIGNING == ''

  stamp = headers.fetch('webhook-timestamp', '') # https://www.standardwebhooks.com
  return false unless stamp.match?(/\A\d+\z/) && (Time.now.to_i - stamp.to_i).abs <= 300

  key = SIGNING.delete_prefix('whsec_').unpack1('m')
  signed = "#{headers.fetch('webhook-id', '')}.#{stamp}.".b + body
  mine = "v1,#{[OpenSSL::HMAC.digest('SHA256', key, signed)].pack('m0')}"
  headers.fetch('webhook-signature', '').split.any? { |theirs| same?(mine, theirs) }
end

def take(headers, body)
  return 401 unless genuine?(headers, body)

  event = JSON.parse(body)
  name = event.fetch('name')
  LOCK.synchronize do
    WORK << event unless SEEN.key?(name)
    SEEN[name] = true
  end
  204 # also to one that came before: it is here, and needs not come again
rescue JSON::ParserError, KeyError, TypeError, NoMethodError
  400
end

# One request a connection: enough here; a web framework does it better.
def serve(socket)
  socket.gets("\n", 8192)
  headers = {}
  while headers.size < 100 && (line = socket.gets("\n", 8192)) && line.strip != ''
    name, value = line.split(':', 2)
    headers[name.downcase] = value.to_s.strip
  end
  length = headers.fetch('content-length', '0').to_i
  status = length > MAX_BYTES ? 413 : take(headers, length.zero? ? '' : socket.read(length).to_s)
  socket.write("HTTP/1.1 #{status} #{REASONS[status]}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
rescue SystemCallError, IOError
  nil
ensure
  socket.close
end

Thread.new do
  loop do
    event = WORK.pop
    post = event['post']
    puts "scan #{event['name']} #{JSON.generate(post['title'] || post['text'] || '')} #{post['url']}"
  end
end
$stdout.sync = true
server = TCPServer.new('127.0.0.1', PORT)
puts "ready http://127.0.0.1:#{PORT}/"
loop { Thread.new(server.accept) { |socket| serve(socket) } }
