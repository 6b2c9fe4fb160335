#include "dcache/candidate_set.h"

namespace pmfs::dcache {

void CandidateSet::looked_up(Dentry& target) {
  if (target.negative()) return;
  DentryLinks& links = target.links;
  if (links.heat_version != version_) {
    links.heat_version = version_;
    links.heat = 0;
  }
  if (links.heat != ~u32{0}) links.heat += 1;
  if (target.candidate != 0) {
    if (least_popular_cand_ != &target && links.heat < least_popular_cand_->links.heat) least_popular_cand_ = &target;
    return;
  }
  if (size_ < capacity_) {
    insert(target);
    if (least_popular_cand_ == nullptr || links.heat < least_popular_cand_->links.heat) least_popular_cand_ = &target;
    return;
  }
  if (capacity_ == 0 || links.heat <= least_popular_cand_->links.heat + threshold_) return;
  remove(*least_popular_cand_);
  insert(target);
  least_popular_cand_ = &target;
  replaced_ += 1;
}

void CandidateSet::insert(Dentry& dentry) {
  dentry.candidate = 1;
  dentry.links.previous = 0;
  dentry.links.next = first_;
  if (first_ != 0) cache_.arena().as<Dentry>(first_)->links.previous = dentry.slot;
  first_ = dentry.slot;
  size_ += 1;
}

void CandidateSet::remove(Dentry& dentry) {
  if (dentry.candidate == 0) return;
  const DentryLinks& links = dentry.links;
  if (links.next != 0) cache_.arena().as<Dentry>(links.next)->links.previous = links.previous;
  if (links.previous != 0) {
    cache_.arena().as<Dentry>(links.previous)->links.next = links.next;
  } else {
    first_ = links.next;
  }
  dentry.candidate = 0;
  size_ -= 1;
  if (least_popular_cand_ == &dentry) least_popular_cand_ = first_ != 0 ? cache_.arena().as<Dentry>(first_) : nullptr;
}

void CandidateSet::clear() {
  while (first_ != 0) remove(*cache_.arena().as<Dentry>(first_));
}

}  // namespace pmfs::dcache
