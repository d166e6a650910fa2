"""Moved."""

from howsure.policies.deployment import AllData as AllData
from howsure.policies.deployment import DeferralData as DeferralData
from howsure.policies.deployment import ExpectedData as ExpectedData
from howsure.policies.deployment import PlanData as PlanData
from howsure.policies.deployment import ShareData as ShareData
from howsure.policies.deployment import TrialData as TrialData
