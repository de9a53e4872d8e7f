//! How often somebody may ask for something: token buckets, in this process or shared through Redis.
//!
//! A bucket is one moment: when it would be full again. Asking moves it on by one token's time; a bucket that would
//! take longer than its size to fill up refuses, and says how long to wait. Redis keeps the same moment for all
//! processes, by its own clock; where it is away, each process goes on by itself.

use crate::error::Error;
use redis::aio::ConnectionManager;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many in so much time, at once if need be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub count: u32,
    /// In which time.
    pub per: Duration,
}

impl Rate {
    /// So many a minute.
    pub const fn a_minute(count: u32) -> Self {
        Rate { count, per: Duration::from_secs(60) }
    }

    /// What one token takes to come back.
    fn interval(self) -> Duration {
        self.per / self.count.max(1)
    }
}

/// Buckets kept in this process. Past it, those that are full are forgotten: they say nothing.
const BUCKETS_MAX: usize = 100_000;
/// Who asks waits for Redis no longer than this.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);
/// After Redis failed, it is left alone for so long.
const PAUSE: Duration = Duration::from_secs(2);

/// Takes a token, or answers in how many microseconds there is one. By the clock of Redis, which all processes share.
const TAKE: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + interval
if full_at - now > size then return full_at - now - size end
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000))
return 0";

/// Counts what is asked for.
#[derive(Debug)]
pub struct Limiter {
    buckets: Mutex<HashMap<String, Instant>>,
    redis: Option<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: redis::Client,
    connection: tokio::sync::Mutex<Option<ConnectionManager>>,
    away_until: Mutex<Option<Instant>>,
}

impl Limiter {
    /// One for this process alone, or shared through this Redis.
    pub fn open(redis_url: Option<&str>) -> Result<Self, Error> {
        let shared = |url: &str| -> Result<Shared, Error> {
            let client = crate::attempts::hints::client(url)?;
            Ok(Shared { client, connection: tokio::sync::Mutex::default(), away_until: Mutex::default() })
        };
        Ok(Limiter { buckets: Mutex::default(), redis: redis_url.map(shared).transpose()? })
    }

    /// Takes one token of `key`; answers how long to wait if there is none.
    pub async fn take(&self, key: &str, rate: Rate) -> Result<(), Duration> {
        if let Some(shared) = &self.redis
            && let Some(answer) = shared.take(key, rate).await
        {
            return answer;
        }
        self.take_here(key, rate, Instant::now())
    }

    fn take_here(&self, key: &str, rate: Rate, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, full_at| *full_at > now);
        }
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(key) {
            return Err(rate.interval());
        }
        let full_at = buckets.get(key).copied().unwrap_or(now).max(now) + rate.interval();
        let wait = (full_at - now).saturating_sub(rate.per);
        if !wait.is_zero() {
            return Err(wait);
        }
        buckets.insert(key.to_owned(), full_at);
        Ok(())
    }
}

impl Shared {
    /// `None` if Redis does not answer.
    async fn take(&self, key: &str, rate: Rate) -> Option<Result<(), Duration>> {
        let is_away = |until: &Mutex<Option<Instant>>| {
            until.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|until| Instant::now() < until)
        };
        if is_away(&self.away_until) {
            return None;
        }
        match tokio::time::timeout(ANSWER_TIMEOUT, self.ask(key, rate)).await {
            Ok(Ok(0)) => Some(Ok(())),
            Ok(Ok(micros)) => Some(Err(Duration::from_micros(micros))),
            failed => {
                let reason =
                    failed.map_or_else(|_| "no answer".to_owned(), |answer| format!("{:?}", answer.err()));
                tracing::warn!("Redis is away ({reason}); each process counts by itself until it is back");
                *self.away_until.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Instant::now() + PAUSE);
                None
            }
        }
    }

    async fn ask(&self, key: &str, rate: Rate) -> redis::RedisResult<u64> {
        let mut connection = {
            let mut connection = self.connection.lock().await;
            match &*connection {
                Some(open) => open.clone(),
                None => connection.insert(ConnectionManager::new(self.client.clone()).await?).clone(),
            }
        };
        let (interval, size) = (rate.interval().as_micros(), rate.per.as_micros());
        let mut take = redis::cmd("EVAL");
        take.arg(TAKE).arg(1).arg(format!("ode:limit:{key}"));
        take.arg(interval.to_string()).arg(size.to_string());
        take.query_async(&mut connection).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_come_at_once_and_then_one_every_six_seconds() {
        let (limiter, rate, start) = (Limiter::open(None).unwrap(), Rate::a_minute(10), Instant::now());
        let at = |seconds: u64| limiter.take_here("a", rate, start + Duration::from_secs(seconds));
        for _ in 0..10 {
            assert_eq!(at(0), Ok(()));
        }
        assert_eq!(at(0), Err(Duration::from_secs(6)));
        assert_eq!(at(5), Err(Duration::from_secs(1)));
        assert_eq!(at(6), Ok(()));
        assert_eq!(at(6), Err(Duration::from_secs(6)));
        assert_eq!(limiter.take_here("b", rate, start), Ok(()), "another's bucket is another");
        for _ in 0..10 {
            assert_eq!(at(600), Ok(()), "it fills up again, and not beyond");
        }
        assert!(at(600).is_err());
    }

    #[test]
    fn buckets_are_bounded_and_a_flood_of_names_is_refused() {
        let (limiter, rate, now) = (Limiter::open(None).unwrap(), Rate::a_minute(10), Instant::now());
        for number in 0..BUCKETS_MAX {
            limiter.take_here(&number.to_string(), rate, now).unwrap();
        }
        assert!(limiter.take_here("one more", rate, now).is_err());
        assert_eq!(limiter.take_here("one more", rate, now + Duration::from_secs(7)), Ok(()));
    }
}
